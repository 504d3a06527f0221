"""A value that is loaded when it is first asked for, once, however many ask."""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio

T = TypeVar("T")


class Lazy(Generic[T]):
    """The first asker loads, the others wait for the same load; if it fails, it fails for them all, and is forgotten.

    If the loading asker is cancelled, one of those who wait loads instead.
    """

    def __init__(self, load: Callable[[], Awaitable[T]]) -> None:
        self._load = load
        self._lock = anyio.Lock()
        self._value: tuple[T] | None = None
        self._failures = 0
        self._failure: Exception | None = None

    @property
    def is_loaded(self) -> bool:
        """Whether ``get`` returns without a wait."""
        return self._value is not None

    async def get(self) -> T:
        if self._value is None:
            failures = self._failures
            async with self._lock:
                if self._value is None:
                    if self._failure is not None and self._failures != failures:
                        raise self._failure  # else each of many would wait for a load of its own, one after the other
                    self._value = (await self._loaded(),)
        return self._value[0]

    async def _loaded(self) -> T:
        try:
            return await self._load()
        except Exception as error:
            self._failures += 1
            self._failure = error
            raise
