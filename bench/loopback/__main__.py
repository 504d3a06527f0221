"""The program of that process: prints its port and runs until its stdin ends."""

import asyncio
import functools
import sys
import threading
from pathlib import Path

from tallymark.bench.loopback.connection import Connection
from tallymark.bench.loopback.objects import Objects
from tallymark.bench.loopback.rate import Rate


async def _serve(latency_s: float, kept: tuple[int, int], puts_per_s: float, held: Path | None) -> None:
    """``kept`` are the most bytes of an object, and of a data file."""
    objects = Objects()
    if held is not None:
        objects.hold(held.read_text().splitlines())
    rate = Rate(puts_per_s)
    bytes_max, data_bytes_max = kept
    connection = functools.partial(
        Connection, objects, latency_s, kept_bytes_max=bytes_max, data_kept_bytes_max=data_bytes_max, rate=rate
    )
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(connection, "127.0.0.1", 0)
    print(listening.sockets[0].getsockname()[1], flush=True)  # noqa: T201 the parent reads it
    ended = asyncio.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), loop.call_soon_threadsafe(ended.set)), daemon=True).start()
    await ended.wait()


if __name__ == "__main__":
    _, latency, kept, data_kept, puts, *names = sys.argv
    asyncio.run(_serve(float(latency), (int(kept), int(data_kept)), float(puts), Path(names[0]) if names else None))
