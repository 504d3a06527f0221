"""A value that is loaded when it is first asked for, once, however many ask."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Loading:
    """One load that is under way."""

    ended: anyio.Event = field(default_factory=anyio.Event)
    failure: Exception | None = None


class Lazy(Generic[T]):
    """The first asker loads, the others wait for the same load; if it fails, it fails for them all, and is forgotten.

    All of them go on in the same pass of the event loop, so that a thousand first requests still come together.

    If the loading asker is cancelled, one of those who wait loads instead.
    """

    def __init__(self, load: Callable[[], Awaitable[T]]) -> None:
        self._load = load
        self._value: tuple[T] | None = None
        self._loading: _Loading | None = None

    @property
    def is_loaded(self) -> bool:
        """Whether ``get`` returns without a wait."""
        return self._value is not None

    async def get(self) -> T:
        while self._value is None:
            if self._loading is None:
                await self._load_for_all()
            else:
                loading = self._loading
                await loading.ended.wait()
                if loading.failure is not None:
                    raise loading.failure  # else each of many would wait for a load of its own, one after the other
        return self._value[0]

    async def _load_for_all(self) -> None:
        loading = self._loading = _Loading()
        try:
            self._value = (await self._load(),)
        except Exception as error:
            loading.failure = error
            raise
        finally:
            self._loading = None
            loading.ended.set()
