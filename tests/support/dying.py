"""A process that dies at a chosen call to storage, as storage sees it."""

from collections.abc import Awaitable, Callable
from typing import Any

from tallymark.backends.contract import Backend, NewFile
from tests.support.wrapped import WrappedBackend


class ProcessDied(BaseException):
    """Not an Exception: nothing in a dead process runs any more, so nothing there may handle it."""


class DyingBackend(WrappedBackend):
    """Storage as one process has it: its ``at``-th call (counted from 1) is the last that storage hears of.

    The process dies before it learns the answer. Without ``at`` it lives, and its calls are counted.
    """

    def __init__(self, inner: Backend, *, at: int | None = None) -> None:
        super().__init__(inner)
        self.count = 0
        self._at = at

    @property
    def is_dead(self) -> bool:
        return self._at is not None and self.count >= self._at

    def new_file(self, path: str, *, staging: str) -> NewFile:
        self._refuse_if_dead()
        return super().new_file(path, staging=staging)

    async def _through(self, verb: str, paths: tuple[str, ...], do: Callable[[], Awaitable[Any]]) -> Any:
        self._refuse_if_dead()
        self.count += 1
        answer = await do()
        self._refuse_if_dead()  # by this call, or by another that was made meanwhile
        return answer

    def _publish(self, path: str, file: NewFile) -> None:
        self._refuse_if_dead()
        self.count += 1
        file.publish()
        self._refuse_if_dead()

    def _refuse_if_dead(self) -> None:
        if self.is_dead:
            raise ProcessDied
