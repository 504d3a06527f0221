"""Stores without rename: S3 and GCS. Each object arrives whole by one put; a new one by a put-if-absent with a nonce.

Owns: which requests a verb of the contract makes, and in which order. Does not own: the requests (``object_client``),
whose an object is (``claim``), and retries of everything but put_new (``retrying``).
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from typing import BinaryIO

import anyio

from tallymark.backends.claim import Claim
from tallymark.backends.concurrently import concurrently
from tallymark.backends.contract import Entry, NewFile, check_path
from tallymark.backends.errors import InvalidPath, NotFound, NotPermitted
from tallymark.backends.meter import RequestStatistics
from tallymark.backends.object_client import ObjectClient
from tallymark.backends.options import StorageOptions
from tallymark.backends.retry import Retries
from tallymark.backends.spool import Spool
from tallymark.backends.threads import Threads

DELETE_CONCURRENCY = 16
"""Requests that delete at once: where a store takes objects one by one, thousands of them are not to take minutes."""


class ObjectStoreBackend:
    """Whole objects below one prefix of a bucket. One object serves all threads and event loops of a process."""

    has_staging = False

    def __init__(
        self, client: ObjectClient, retries: Retries, options: StorageOptions, *, delete_count: int = 1000
    ) -> None:
        """``delete_count``: objects that the store deletes by one request."""
        self._client = client
        self._retries = retries
        self._threads = Threads(options.request_count_max)
        self._spool_memory_bytes = options.spool_memory_bytes
        self._delete_count = delete_count

    @property
    def url(self) -> str:
        return self._client.url

    @property
    def throttled_count(self) -> int:
        """Requests that the store answered with the wish for fewer; those that were repeated are among them."""
        return self._client.throttled_count

    def statistics(self) -> RequestStatistics:
        """Every HTTP request so far."""
        return self._client.statistics()

    async def get(self, path: str) -> bytes:
        return await self._threads.run(self._client.get, path)

    async def get_range(self, path: str, start: int, length: int) -> bytes:
        return await self._threads.run(self._client.get_range, path, start, length)

    async def put(self, path: str, data: bytes) -> None:
        await self._threads.run(self._client.put, path, bytes(data))

    async def put_new(self, path: str, data: bytes) -> None:
        """Put as the contract's does, but raise AlreadyExists only for another's object: resolve unclear puts."""
        claim = Claim(self._client, path, bytes(data))
        try:
            await self._retries.run(lambda: self._threads.run(claim.attempt), sent=len(data))
        except (NotPermitted, InvalidPath) as refusal:
            raise claim.outcome(refusal) from None

    def list(self, directory: str) -> AsyncGenerator[Entry, None]:
        return self._list(directory, None)

    def list_after(self, directory: str, after: str) -> AsyncGenerator[Entry, None]:
        """As ``list``, without what sorts up to and including the path ``after``."""
        return self._list(directory, after)

    async def folders(self, directory: str) -> Sequence[str]:
        """As ``FolderListing``, by one request for each thousand of what is directly below the directory."""
        return await self._threads.run(self._client.folders, directory)

    async def delete(self, paths: Sequence[str]) -> None:
        """As the contract's. Where that takes several requests, each is repeated separately: to repeat the whole
        for one lost answer among a thousand would never come to its end.
        """
        if 0 < len(paths) <= self._delete_count:  # as usual; a task group would take half as long as a near store
            await self._delete(paths)
            return
        for path in paths:
            self._client.key(path)
        pages = [paths[first : first + self._delete_count] for first in range(0, len(paths), self._delete_count)]

        async def delete(page: Sequence[str]) -> None:
            await self._retries.run(lambda: self._delete(page))

        await concurrently(delete, pages[:-1], limit=DELETE_CONCURRENCY)
        await concurrently(delete, pages[-1:], limit=1)

    async def _delete(self, page: Sequence[str]) -> None:
        """By one request; one that was done and whose answer was lost finds nothing the second time."""
        with suppress(NotFound):
            await self._threads.run(self._client.delete, page)

    def new_file(self, path: str, *, staging: str) -> NewFile:
        self._client.key(path)
        self._client.check_process(path)  # now, and not when all its bytes are there
        return _SpooledFile(self._client, path, Spool(self._spool_memory_bytes))

    async def open_staging(self, directory: str) -> None:
        check_path(directory)
        await anyio.lowlevel.checkpoint()

    async def close_staging(self, directory: str) -> None:
        check_path(directory)
        await anyio.lowlevel.checkpoint()

    async def _list(self, directory: str, after: str | None) -> AsyncGenerator[Entry, None]:
        has_more = True
        while has_more:
            entries, has_more = await self._threads.run(self._client.page, directory, after)
            for entry in entries:
                yield entry
            if entries:
                after = entries[-1].path

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url}>"


class _SpooledFile:
    """A data file whose bytes are sent when they are whole: by one put-if-absent, which is never repeated."""

    def __init__(self, client: ObjectClient, path: str, spool: Spool) -> None:
        self._client = client
        self._path = path
        self._spool: Spool | None = spool

    @property
    def sink(self) -> BinaryIO:
        return self._bytes().sink

    def publish(self) -> None:
        spool = self._bytes()
        claim = Claim(self._client, self._path, spool.whole())
        try:
            claim.attempt()
        except (NotPermitted, InvalidPath) as refusal:
            raise claim.outcome(refusal) from None
        spool.close()

    def again(self, path: str) -> NewFile:
        self._client.key(path)
        spool, self._spool = self._bytes(), None
        return _SpooledFile(self._client, path, spool)

    def abandon(self) -> None:
        if self._spool is not None:
            self._spool.close()

    def _bytes(self) -> Spool:
        assert self._spool is not None, "its bytes were published under another name"
        return self._spool
