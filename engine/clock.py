"""Wall-clock time as a part that is passed in, so that tests decide what time it is.

Durations are differences of ``anyio.current_time()``, which may stand still while the machine sleeps: ``asleep_s``.
"""

import time
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


def asleep_s() -> float:
    """Whole seconds that this machine has slept since it was started, which its monotonic clock leaves out.

    0 where the system does not tell.
    """
    try:
        # In this order: a pause between the two passes for sleep, never for less than none.
        awake_s = time.clock_gettime(time.CLOCK_MONOTONIC)
        return float(round(time.clock_gettime(time.CLOCK_BOOTTIME) - awake_s))
    except (AttributeError, OSError):  # not Linux
        return 0.0
