"""Count of a store's puts without an answer: its backend repeats them, invisible to callers."""

from collections.abc import Callable

from tallymark.backends.contract import Backend
from tallymark.backends.retrying import Metered


def unanswered_puts_of(backend: Backend) -> Callable[[], int]:
    """Return a function that reads that count; 0 where the backend keeps none.

    If it has not grown during a put, no copy of that put can land later.
    """

    def read() -> int:
        found = backend.statistics() if isinstance(backend, Metered) else None
        return 0 if found is None else sum(found.of(kind).outcomes.get("unknown", 0) for kind in ("put", "post"))

    return read
