"""Backend whose unanswered requests are repeated where that is harmless.

Repeated: get, get_range, put, list, folders, delete, open_staging, close_staging; a second time they do the same as
the first.
Not repeated: put_new, new_file and publish. A second put_new would meet the first one's object and treat it as
another's, so the stores that lose answers repeat it themselves, where a nonce identifies the object's writer, with the
same ``Retries``.

Bounds: each attempt ends within ``RetrySettings.attempt_timeout_s`` and each call within ``timeout_s``, whatever the
store does; a listing and a delete of many do so for each page. A caller therefore never waits without limit, and bounds
above that are longer than ``timeout_s`` (a flush's 30 s, a decision's 120 s) see the error and not silence.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol, runtime_checkable

import anyio

from tallymark.backends.concurrently import concurrently
from tallymark.backends.contract import Backend, Entry, NewFile, folders_of
from tallymark.backends.errors import Unavailable
from tallymark.backends.measured import close_listing
from tallymark.backends.meter import RequestStatistics
from tallymark.backends.retry import Retries, Trial, bounded
from tallymark.backends.throttling import throttling_of

PAGE_COUNT = 1000
"""Entries of a listing, or paths of a delete, per attempt: the most that S3 accepts in one request."""

DELETE_CONCURRENCY = 4
"""Pages of one delete at once: direct markers of a large job are a hundred pages."""

DELETES_PER_S_MIN = 100.0
"""The slowest delete of many that is waited for: a remote store that deletes paths one by one."""


@runtime_checkable
class Metered(Protocol):
    """A backend that counts its own requests."""

    def statistics(self) -> RequestStatistics: ...


@runtime_checkable
class Resumable(Protocol):
    """A store that can list from a path on, so that a long listing survives many lost answers."""

    def list_after(self, directory: str, after: str) -> AsyncIterator[Entry]:
        """Yield the entries of ``Backend.list`` after the path ``after``."""
        ...


class RetryingBackend:
    def __init__(self, inner: Backend, retries: Retries) -> None:
        self._inner = inner
        self._throttled = throttling_of(inner)
        self._retries = retries

    @property
    def url(self) -> str:
        return self._inner.url

    @property
    def has_staging(self) -> bool:
        return self._inner.has_staging

    @property
    def throttled_count(self) -> int:
        """The count of the store, if it keeps one."""
        return self._throttled()

    def statistics(self) -> RequestStatistics | None:
        """Return the store's own count of requests; None where it does not count them."""
        return self._inner.statistics() if isinstance(self._inner, Metered) else None

    async def get(self, path: str) -> bytes:
        return await self._retries.run(lambda: self._inner.get(path))

    async def get_range(self, path: str, start: int, length: int) -> bytes:
        return await self._retries.run(lambda: self._inner.get_range(path, start, length))

    async def put(self, path: str, data: bytes) -> None:
        await self._retries.run(lambda: self._inner.put(path, data), sent=len(data))

    async def put_new(self, path: str, data: bytes) -> None:
        await self._inner.put_new(path, data)

    async def list(self, directory: str) -> AsyncIterator[Entry]:
        """List as the contract's does; no entry appears twice, even if the listing had to restart."""
        listing = _Listing(self._inner, directory)
        trial = self._retries.trial()
        try:
            while not listing.is_over:
                failure = await self._page(listing, trial)
                for entry in listing.news():
                    yield entry
                if failure is not None:
                    await anyio.sleep(trial.pause_s(failure, anyio.current_time()))
                    listing.resume()
        finally:
            await listing.close()

    async def _page(self, listing: "_Listing", trial: Trial) -> Unavailable | None:
        """Read a page, or the part of it that arrives. Return the error that ended it."""
        failure = None
        try:
            await bounded(listing.read_page, trial.attempt_s(anyio.current_time()), self._retries.where)
        except Unavailable as error:
            failure = error
        if failure is None or listing.has_news:
            trial.answered(anyio.current_time(), is_news=listing.has_news)
        return failure

    async def folders(self, directory: str) -> Sequence[str]:
        return await self._retries.run(lambda: folders_of(self._inner, directory))

    async def delete(self, paths: Sequence[str]) -> None:
        pages = [paths[first : first + PAGE_COUNT] for first in range(0, len(paths), PAGE_COUNT)]
        await concurrently(self._delete_page, pages[:-1], limit=DELETE_CONCURRENCY)
        await concurrently(self._delete_page, pages[-1:], limit=1)

    async def _delete_page(self, page: Sequence[str]) -> None:
        await self._retries.run(lambda: self._inner.delete(page), more_s=len(page) / DELETES_PER_S_MIN)

    def new_file(self, path: str, *, staging: str) -> NewFile:
        return self._inner.new_file(path, staging=staging)

    async def open_staging(self, directory: str) -> None:
        await self._retries.run(lambda: self._inner.open_staging(directory))

    async def close_staging(self, directory: str) -> None:
        await self._retries.run(lambda: self._inner.close_staging(directory))

    def __repr__(self) -> str:
        return repr(self._inner)


class _Listing:
    """One listing over several attempts, read page by page."""

    def __init__(self, inner: Backend, directory: str) -> None:
        self._inner = inner
        self._directory = directory
        self._last: str | None = None
        """The last path that the caller has received."""
        self._page: list[Entry] = []
        self._entries = inner.list(directory)
        self.is_over = False

    @property
    def has_news(self) -> bool:
        """Whether something was read that the caller has not received."""
        return bool(self._page) and (self._last is None or self._page[-1].path > self._last)

    async def read_page(self) -> None:
        async for entry in self._entries:
            self._page.append(entry)
            if len(self._page) >= PAGE_COUNT:
                return
        self.is_over = True

    def news(self) -> Sequence[Entry]:
        page, self._page = self._page, []
        if self._last is not None and page and page[0].path <= self._last:
            page = [entry for entry in page if entry.path > self._last]
        if page:
            self._last = page[-1].path
        return page

    async def close(self) -> None:
        await close_listing(self._entries)

    def resume(self) -> None:
        """Restart where the answers ended."""
        if self._last is not None and isinstance(self._inner, Resumable):
            self._entries = self._inner.list_after(self._directory, self._last)
        else:
            self._entries = self._inner.list(self._directory)
