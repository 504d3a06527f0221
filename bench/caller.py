"""Three ways to call: the library's own call, the same in a worker thread of an event loop, and ours."""

import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, Protocol

import anyio
import anyio.to_thread

Arguments = tuple[Any, ...]


class Caller(Protocol):
    """How calls are made, one after the other or so many at once."""

    async def seconds(self, calls: Sequence[Arguments], concurrency: int) -> float:
        """How long all of them took."""
        ...


class Blocking:
    """A blocking call as it is. Many at once run in threads, which are there beforehand."""

    def __init__(self, call: Callable[..., object]) -> None:
        self._call = call

    async def seconds(self, calls: Sequence[Arguments], concurrency: int) -> float:
        if concurrency == 1:
            return self._one_by_one(calls)
        with ThreadPoolExecutor(concurrency) as pool:
            started = threading.Barrier(concurrency)
            wait([pool.submit(started.wait) for _ in range(concurrency)])
            return self._at_once(pool, calls, concurrency)

    def _one_by_one(self, calls: Sequence[Arguments]) -> float:
        began = time.perf_counter()
        self._work(iter(calls))
        return time.perf_counter() - began

    def _at_once(self, pool: ThreadPoolExecutor, calls: Sequence[Arguments], concurrency: int) -> float:
        shared = iter(calls)
        began = time.perf_counter()
        working = [pool.submit(self._work, shared) for _ in range(concurrency)]
        for worker in working:
            worker.result()
        return time.perf_counter() - began

    def _work(self, calls: Iterator[Arguments]) -> None:
        for arguments in calls:
            self._call(*arguments)


class Awaited:
    """An asynchronous call. Many at once run in tasks."""

    def __init__(self, call: Callable[..., Awaitable[object]]) -> None:
        self._call = call

    async def seconds(self, calls: Sequence[Arguments], concurrency: int) -> float:
        shared = iter(calls)
        began = time.perf_counter()
        if concurrency == 1:
            await self._work(shared)
        else:
            async with anyio.create_task_group() as tasks:
                for _ in range(concurrency):
                    tasks.start_soon(self._work, shared)
        return time.perf_counter() - began

    async def _work(self, calls: Iterator[Arguments]) -> None:
        for arguments in calls:
            await self._call(*arguments)


def in_thread(call: Callable[..., object], concurrency: int) -> Awaited:
    """The hop that every asynchronous program pays for a blocking library."""
    limiter = anyio.CapacityLimiter(concurrency)

    async def hop(*arguments: object) -> object:
        return await anyio.to_thread.run_sync(call, *arguments, limiter=limiter)

    return Awaited(hop)
