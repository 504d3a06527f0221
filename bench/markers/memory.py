"""Store in memory whose puts and reads take time, and the distributions of that time."""

import math
from collections.abc import AsyncIterator, Callable
from random import Random

import anyio

from tallymark.backends.contract import Entry
from tallymark.backends.memory import MemoryBackend

PutTime = Callable[[], float]
"""Returns the seconds that the next put takes."""

PAGE_COUNT = 1000
"""Objects in one page of a listing, as on S3 and GCS."""

_Z99 = 2.3263478740408408
"""The 99th percentile of the standard normal distribution."""


def constant(seconds: float) -> PutTime:
    return lambda: seconds


def lognormal(median_s: float, random: Random, *, p99_over_median: float = 5.0) -> PutTime:
    """Draw times as object stores show them within a region: a long tail on one side."""
    sigma = math.log(p99_over_median) / _Z99
    return lambda: random.lognormvariate(math.log(median_s), sigma)


class SlowMemory(MemoryBackend):
    """Puts-if-absent take ``put_time``, any number of them at once; each read and each page of a listing ``read_s``."""

    def __init__(self, put_time: PutTime, read_s: float = 0.0) -> None:
        super().__init__()
        self.put_time = put_time
        self.read_s = read_s
        self.puts = 0
        self.puts_s = 0.0
        """Time that the puts took, added up."""
        self.lines = 0
        self.lines_s = 0.0
        """The same, counted once per line that was put."""

    async def put_new(self, path: str, data: bytes) -> None:
        started = anyio.current_time()
        if seconds := self.put_time():
            await anyio.sleep(seconds)
        await super().put_new(path, data)
        took_s, lines = anyio.current_time() - started, data.count(b"\n")
        self.puts += 1
        self.puts_s += took_s
        self.lines += lines
        self.lines_s += lines * took_s

    async def get(self, path: str) -> bytes:
        if self.read_s:
            await anyio.sleep(self.read_s)
        return await super().get(path)  # get_range calls it, too

    async def list(self, directory: str) -> AsyncIterator[Entry]:
        number = 0
        async for entry in super().list(directory):
            if self.read_s and number % PAGE_COUNT == 0:
                await anyio.sleep(self.read_s)
            number += 1
            yield entry
