"""An event loop for a task, which is blocking code: in a thread of its own, started when it is first needed."""

import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, wait
from contextlib import ExitStack

from anyio.from_thread import BlockingPortal, start_blocking_portal

from tallymark.engine.errors import Closed


class TaskLoop:
    """Owned by one task, used from any thread. ``close`` it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = ExitStack()
        self._portal: BlockingPortal | None = None
        self._pending: set[Future[None]] = set()
        self._is_closed = False

    def start_soon(self, act: Callable[[Sequence[str]], Awaitable[None]], paths: Sequence[str], /) -> Future[None]:
        """Run ``act(paths)``; returns at once, with a future of its outcome. Raises Closed after ``close``."""
        with self._lock:
            if self._is_closed:
                raise Closed("the task that asked for these markers is over")
            if self._portal is None:
                self._portal = self._running.enter_context(start_blocking_portal("trio"))
            future = self._portal.start_task_soon(act, paths)
            self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        return future

    def close(self, *, patience_s: float) -> None:
        """Let what is under way land, within ``patience_s``, so that the job finds it; then stop."""
        with self._lock:
            self._is_closed = True
        wait(list(self._pending), timeout=patience_s)
        if self._portal is not None:
            self._portal.call(self._portal.stop, True)
        self._running.close()
