"""Backend whose calls are counted and timed, by verb.

One call of the contract is one request here. Stores that use HTTP count the requests on the wire instead, which may be
more (pages of a listing, reading back a put) and are what a vendor bills.
"""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import BinaryIO, Self, TypeVar

import anyio

from tallymark.backends.contract import Backend, Entry, NewFile, folders_of
from tallymark.backends.meter import RequestClass, RequestMeter, RequestStatistics, outcome_of
from tallymark.backends.throttling import throttling_of

T = TypeVar("T")


class MeasuredBackend:
    def __init__(self, inner: Backend, meter: RequestMeter) -> None:
        self._inner = inner
        self._throttled = throttling_of(inner)
        self._meter = meter

    @property
    def url(self) -> str:
        return self._inner.url

    @property
    def has_staging(self) -> bool:
        return self._inner.has_staging

    @property
    def throttled_count(self) -> int:
        """The count of the store, if it keeps one."""
        return max(self._meter.throttled, self._throttled())

    def statistics(self) -> RequestStatistics:
        return self._meter.statistics()

    async def get(self, path: str) -> bytes:
        return await self._counted("get", lambda: self._inner.get(path), received=len)

    async def get_range(self, path: str, start: int, length: int) -> bytes:
        return await self._counted("get_range", lambda: self._inner.get_range(path, start, length), received=len)

    async def put(self, path: str, data: bytes) -> None:
        await self._counted("put", lambda: self._inner.put(path, data), sent=len(data))

    async def put_new(self, path: str, data: bytes) -> None:
        await self._counted("put", lambda: self._inner.put_new(path, data), sent=len(data))

    async def list(self, directory: str) -> AsyncIterator[Entry]:
        """Yield the contract's entries; counted when it ends, without the time that the caller spends between
        entries.
        """
        waited_s = 0.0
        entries = aiter(self._inner.list(directory))
        try:
            while True:
                started = anyio.current_time()
                try:
                    entry = await anext(entries)
                finally:
                    waited_s += anyio.current_time() - started
                yield entry
        except (StopAsyncIteration, GeneratorExit) as end:
            self._meter.record("list", "ok", seconds=waited_s)
            if isinstance(end, GeneratorExit):
                await close_listing(entries)
                raise
        except BaseException as error:
            self._meter.record("list", outcome_of(error), seconds=waited_s)
            raise

    async def folders(self, directory: str) -> Sequence[str]:
        return await self._counted("list", lambda: folders_of(self._inner, directory))

    async def delete(self, paths: Sequence[str]) -> None:
        await self._counted("delete", lambda: self._inner.delete(paths))

    def new_file(self, path: str, *, staging: str) -> NewFile:
        with _Counting(self._meter, "stage", time.perf_counter):
            return _MeasuredFile(self._inner.new_file(path, staging=staging), self._meter)

    async def open_staging(self, directory: str) -> None:
        await self._counted("stage", lambda: self._inner.open_staging(directory))

    async def close_staging(self, directory: str) -> None:
        await self._counted("stage", lambda: self._inner.close_staging(directory))

    async def _counted(
        self,
        request_class: RequestClass,
        call: Callable[[], Awaitable[T]],
        *,
        sent: int = 0,
        received: Callable[[T], int] = lambda _: 0,
    ) -> T:
        with _Counting(self._meter, request_class, anyio.current_time, sent=sent) as counting:
            answer = await call()
            counting.received = received(answer)
            return answer

    def __repr__(self) -> str:
        return repr(self._inner)


async def close_listing(entries: AsyncIterator[Entry]) -> None:
    """End a listing that is not read to its end; the garbage collector would do it outside every task."""
    if isinstance(entries, AsyncGenerator):
        await entries.aclose()


class _MeasuredFile:
    def __init__(self, inner: NewFile, meter: RequestMeter) -> None:
        self._inner = inner
        self._meter = meter

    @property
    def sink(self) -> BinaryIO:
        return self._inner.sink

    def publish(self) -> None:
        with _Counting(self._meter, "put", time.perf_counter, sent=self._size()):
            self._inner.publish()

    def again(self, path: str) -> NewFile:
        return _MeasuredFile(self._inner.again(path), self._meter)

    def abandon(self) -> None:
        self._inner.abandon()

    def _size(self) -> int:
        with suppress(OSError, ValueError):  # a sink without tell, or a closed one
            return self._inner.sink.tell()
        return 0


class _Counting:
    """One request, counted when the block ends, however it ends."""

    __slots__ = ("_meter", "_now", "_request_class", "_sent", "_started", "received")

    def __init__(
        self, meter: RequestMeter, request_class: RequestClass, now: Callable[[], float], *, sent: int = 0
    ) -> None:
        self._meter = meter
        self._request_class: RequestClass = request_class
        self._now = now
        self._sent = sent
        self.received = 0

    def __enter__(self) -> Self:
        self._started = self._now()
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self._meter.record(
            self._request_class,
            "ok" if error is None else outcome_of(error),
            sent=self._sent,
            received=self.received,
            seconds=self._now() - self._started,
        )
