"""Throttling signal of a store: its backend retries throttled requests, invisible to callers."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from tallymark.backends.contract import Backend


@runtime_checkable
class ReportsThrottling(Protocol):
    """A backend that counts what its store throttled."""

    @property
    def throttled_count(self) -> int:
        """Requests so far that the store throttled."""
        ...


def throttling_of(backend: Backend) -> Callable[[], int]:
    """Return a function that reads that count; 0 where the backend keeps none."""
    return (lambda: backend.throttled_count) if isinstance(backend, ReportsThrottling) else (lambda: 0)
