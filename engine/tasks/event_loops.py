"""Event loops in threads: one for the duration of a task, one for objects that a process keeps between its tasks."""

import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from contextlib import ExitStack
from typing import Any, TypeVar

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from tallymark.engine.errors import Closed

T = TypeVar("T")
Given = TypeVar("Given")


class TaskLoop:
    """Owned by one task, which closes it; any thread may use it."""

    def __init__(self, *, patience_s: float) -> None:
        """``patience_s`` bounds the wait for calls in flight when it is closed."""
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._running = ExitStack()
        self._portal: BlockingPortal | None = None
        self._pending: set[Future[Any]] = set()
        self._is_closed = False

    def start_soon(self, act: Callable[[Given], Awaitable[T]], given: Given, /) -> Future[T]:
        """Run ``act(given)``; return at once, with a future of its outcome. Raises Closed after ``close``."""
        with self._lock:
            if self._is_closed:
                raise Closed("the task that asked for this is over")
            if self._portal is None:
                self._portal = self._running.enter_context(start_blocking_portal("trio"))
            future = self._portal.start_task_soon(act, given)
            self._pending.add(future)
        future.add_done_callback(self._pending.discard)
        return future

    def close(self) -> None:
        """Let calls in flight end, within the patience, so that the job finds their results; then stop."""
        with self._lock:
            self._is_closed = True
        wait(list(self._pending), timeout=self._patience_s)
        if self._portal is not None:
            self._portal.call(self._portal.stop, True)
        self._running.close()


class ThreadLoop:
    """Runs from its creation to ``stop``; any other thread may use it."""

    def __init__(self, name: str) -> None:
        self._portal: Future[BlockingPortal] = Future()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def start_soon(self, act: Callable[[Given], Awaitable[T]], given: Given, /) -> Future[T]:
        """Run ``act(given)``; return once the loop has started, with a future of its outcome."""
        return self._portal.result().start_task_soon(act, given)

    def stop(self, last: Callable[[], Awaitable[object]]) -> None:
        """Run ``last``, then end and cancel everything else. Does not wait for that."""
        self._portal.result().start_task_soon(self._end, last)

    def _run(self) -> None:
        try:
            anyio.run(self._serve, backend="trio")
        except Exception as error:
            if self._portal.done():
                raise
            self._portal.set_exception(error)

    async def _end(self, last: Callable[[], Awaitable[object]]) -> None:
        try:
            await last()
        finally:
            await self._portal.result().stop(cancel_remaining=True)

    async def _serve(self) -> None:
        async with BlockingPortal() as portal:
            self._portal.set_result(portal)
            await portal.sleep_until_stopped()
