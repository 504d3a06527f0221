"""The block of a stream, in code that runs in an event loop and in code that does not."""

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from types import TracebackType

import pyarrow as pa
from anyio.from_thread import BlockingPortal, start_blocking_portal

from tallymark.engine.errors import Closed
from tallymark.engine.streams.stream import Stream


class BlockingStream:
    """A stream for threads: any of them may append. Its event loop runs in a separate thread."""

    def __init__(self, portal: BlockingPortal, stream: Stream) -> None:
        self._portal = portal
        self._stream = stream

    def append(
        self, rows: pa.RecordBatch | pa.Table, *, producer: str | None = None, sequence: int | None = None
    ) -> int:
        """Return the position of the log at which the rows are committed. Raises as ``Stream.append``."""
        append = partial(self._stream.append, rows, producer=producer, sequence=sequence)
        try:
            future = self._portal.start_task_soon(append)
        except RuntimeError as error:
            raise Closed("the stream has ended") from error
        return future.result()


class StreamBlock:
    """``async with`` yields a ``Stream``, ``with`` a ``BlockingStream``. Both end alike: what was appended is committed
    first; if the block raises, calls that wait get ``Closed``, and nothing of theirs is left. For one use.
    """

    def __init__(
        self, here: AbstractAsyncContextManager[Stream], *, elsewhere: AbstractAsyncContextManager[Stream]
    ) -> None:
        """``elsewhere`` opens it in another event loop, and shares nothing with this one."""
        self._here = here
        self._in_thread = _blocking(elsewhere)

    async def __aenter__(self) -> Stream:
        return await self._here.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return await self._here.__aexit__(kind, error, traceback)

    def __enter__(self) -> BlockingStream:
        return self._in_thread.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return self._in_thread.__exit__(kind, error, traceback)


@contextmanager
def _blocking(stream: AbstractAsyncContextManager[Stream]) -> Iterator[BlockingStream]:
    with start_blocking_portal("trio") as portal, portal.wrap_async_context_manager(stream) as entered:
        yield BlockingStream(portal, entered)
