"""Wall-clock time as a part that is passed in, so that tests decide what time it is.

Durations do not come from here: they are differences of ``anyio.current_time()``.
"""

from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """The present time in UTC. It may jump, also backwards: nothing is decided by it but an instant's name."""
        ...


class SystemClock:
    """This machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)
