"""Values that are loaded once, on first use, however many callers request them."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import anyio

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Loading:
    """One load in progress."""

    ended: anyio.Event = field(default_factory=anyio.Event)
    failure: Exception | None = None


class Lazy(Generic[T]):
    """A value loaded by its first caller; concurrent callers wait for the same load.

    If the load fails, all of them get its error, and the next caller loads again. All of them resume in the same pass
    of the event loop, so that a thousand first requests still form one batch. If the loading caller is cancelled, one
    of the waiting callers loads instead.
    """

    def __init__(self, load: Callable[[], Awaitable[T]]) -> None:
        self._load = load
        self._value: tuple[T] | None = None
        self._loading: _Loading | None = None

    @property
    def is_loaded(self) -> bool:
        """Whether ``get`` returns without waiting."""
        return self._value is not None

    async def get(self) -> T:
        while self._value is None:
            if self._loading is None:
                await self._load_for_all()
            else:
                loading = self._loading
                await loading.ended.wait()
                if loading.failure is not None:
                    raise loading.failure  # otherwise waiting callers would load one after another
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
