"""One data file of 5 GB, written as a task writes it and read back in a listing."""

import threading
from functools import partial

import anyio

from tallymark.backends.checks import STAGING, Broken
from tallymark.backends.doctor.traces import TracedBackend

LARGE_FILE_BYTES = 5_000_000_000
"""Beyond what fits into 32 bits, and just below the 5 GiB that S3 takes in one put."""

_CHUNK = bytes(range(256)) * (1 << 14)
"""4 MiB: the part that is in memory at a time."""


async def keeps_a_huge_file(backend: TracedBackend, size: int = LARGE_FILE_BYTES) -> str:
    """Put a huge file. It is not read back: the listing shows the size that the put took."""
    await backend.open_staging(STAGING)
    started = anyio.current_time()
    stop = threading.Event()
    try:
        await backend.in_thread(partial(_write, backend, size, stop))
    finally:
        stop.set()
    seconds = anyio.current_time() - started
    sizes = [entry.size async for entry in backend.list("huge")]
    await backend.close_staging(STAGING)
    if sizes != [size]:
        raise Broken(f"a file of {size:,} bytes is listed with {sizes[0] if sizes else 'no'} bytes")
    return f"{size / 1e9:g} GB in {seconds:.0f} s, {size / 1e6 / max(seconds, 1e-3):,.0f} MB/s"


def _write(backend: TracedBackend, size: int, stop: threading.Event) -> None:
    """Write and publish the file, until ``stop`` is set."""
    file = backend.new_file("huge/file", staging=STAGING)
    try:
        for start in range(0, size, len(_CHUNK)):
            if stop.is_set():
                return
            file.sink.write(_CHUNK[: size - start])
        file.publish()
    finally:
        file.abandon()
