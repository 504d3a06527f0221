"""The block of a stream, in code that runs in an event loop and in code that does not."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, ExitStack
from functools import partial
from types import TracebackType

import pyarrow as pa
from anyio.from_thread import BlockingPortal, start_blocking_portal

from tallymark.engine.errors import Closed
from tallymark.engine.streams.stream import Stream

OpenStream = Callable[[], AbstractAsyncContextManager[Stream]]


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

    def __init__(self, opened: OpenStream, *, in_thread: OpenStream) -> None:
        """``in_thread`` opens it in another event loop, and shares nothing with this one."""
        self._opened = opened
        self._in_thread = in_thread
        self._running = ExitStack()
        self._inner: AbstractAsyncContextManager[Stream] | None = None

    async def __aenter__(self) -> Stream:
        self._inner = self._opened()
        return await self._inner.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        assert self._inner is not None, "it was entered"
        return await self._inner.__aexit__(kind, error, traceback)

    def __enter__(self) -> BlockingStream:
        with ExitStack() as running:
            portal = running.enter_context(start_blocking_portal("trio"))
            stream = running.enter_context(portal.wrap_async_context_manager(self._in_thread()))
            self._running = running.pop_all()
        return BlockingStream(portal, stream)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        return self._running.__exit__(kind, error, traceback)
