"""The program of that process: prints its port and runs until its stdin ends."""

import asyncio
import functools
import sys
import threading

from tallymark.bench.loopback.connection import Connection
from tallymark.bench.loopback.objects import Objects


async def _serve(latency_s: float, kept_bytes_max: int) -> None:
    objects = Objects()
    connection = functools.partial(Connection, objects, latency_s, kept_bytes_max=kept_bytes_max)
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(connection, "127.0.0.1", 0)
    print(listening.sockets[0].getsockname()[1], flush=True)  # noqa: T201 the parent reads it
    ended = asyncio.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), loop.call_soon_threadsafe(ended.set)), daemon=True).start()
    await ended.wait()


if __name__ == "__main__":
    asyncio.run(_serve(latency_s=float(sys.argv[1]), kept_bytes_max=int(sys.argv[2])))
