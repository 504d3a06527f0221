"""Runs of a whole job again after a conflict."""

from collections.abc import Callable
from typing import TypeVar

from tallymark.backends.events import EventLog
from tallymark.engine.errors import ConflictError, InvalidRequest

ATTEMPTS = 3
"""Maximum number of runs of an upsert or delete: three writers rarely replace the same files at the same time."""

T = TypeVar("T")

_events = EventLog(__name__)


def retried(run: Callable[[], T], attempts: int) -> T:
    """Return the result of the first run that does not end in a conflict."""
    for attempt in range(1, attempts):
        try:
            return run()
        except ConflictError as error:
            _events.info("write.retried", attempt=attempt, winner=error.winner, partition=error.partition)
    return run()


def check_attempts(attempts: object) -> None:
    if not isinstance(attempts, int) or isinstance(attempts, bool) or attempts < 1:
        raise InvalidRequest(f"attempts={attempts!r}: give a whole number, 1 or more")
