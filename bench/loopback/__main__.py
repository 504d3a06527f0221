"""The program of that process: prints its port and runs until its stdin ends."""

import asyncio
import functools
import sys
import threading
from pathlib import Path

from tallymark.bench.loopback.connection import Connection
from tallymark.bench.loopback.objects import Objects


async def _serve(latency_s: float, kept_bytes_max: int, held: Path | None) -> None:
    objects = Objects()
    if held is not None:
        objects.hold(held.read_text().splitlines())
    connection = functools.partial(Connection, objects, latency_s, kept_bytes_max=kept_bytes_max)
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(connection, "127.0.0.1", 0)
    print(listening.sockets[0].getsockname()[1], flush=True)  # noqa: T201 the parent reads it
    ended = asyncio.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), loop.call_soon_threadsafe(ended.set)), daemon=True).start()
    await ended.wait()


if __name__ == "__main__":
    _, latency, kept, *names = sys.argv
    asyncio.run(_serve(float(latency), int(kept), Path(names[0]) if names else None))
