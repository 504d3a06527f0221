"""A value that is loaded when it is first asked for, once, however many ask."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio

T = TypeVar("T")


class Lazy(Generic[T]):
    """The first asker loads, the others wait for the same load, and a failed load is forgotten.

    If the loading asker is cancelled, one of those who wait loads instead.
    """

    def __init__(self, load: Callable[[], Awaitable[T]]) -> None:
        self._load = load
        self._lock = anyio.Lock()
        self._value: tuple[T] | None = None

    @property
    def is_loaded(self) -> bool:
        return self._value is not None

    async def get(self) -> T:
        if self._value is None:
            async with self._lock:
                if self._value is None:
                    self._value = (await self._load(),)
        return self._value[0]
