"""An event loop in a thread of its own, for what a process keeps between its tasks. It keeps no process from ending."""

import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import TypeVar

import anyio
from anyio.from_thread import BlockingPortal

T = TypeVar("T")
Given = TypeVar("Given")


class ThreadLoop:
    """Runs from its making to ``stop``; any other thread may use it."""

    def __init__(self, name: str) -> None:
        self._portal: Future[BlockingPortal] = Future()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def start_soon(self, act: Callable[[Given], Awaitable[T]], given: Given, /) -> Future[T]:
        """Run ``act(given)``; returns at once, but for the loop's own start, with a future of its outcome."""
        return self._portal.result().start_task_soon(act, given)

    def stop(self, last: Callable[[], Awaitable[object]]) -> None:
        """Run ``last``, then end and cancel all else. Does not wait for that."""
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
