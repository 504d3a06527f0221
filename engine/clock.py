"""Wall-clock time as a parameter, so that tests control it.

Durations are differences of ``anyio.current_time()``, which may stop while the machine sleeps: see ``asleep_s``.
"""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """Return the present time in UTC. It may jump, also backwards: it decides nothing except an instant's name."""
        ...


class SystemClock:
    """This machine's clock."""

    def now(self) -> datetime:
        return datetime.now(UTC)


def asleep_s() -> float:
    """Return the whole seconds that this machine has slept since it started, which its monotonic clock omits.

    0 where the system does not report it.
    """
    try:
        # In this order, a pause between the two reads counts as sleep and the result is never negative.
        awake_s = time.clock_gettime(time.CLOCK_MONOTONIC)
        return float(round(time.clock_gettime(time.CLOCK_BOOTTIME) - awake_s))
    except (AttributeError, OSError):  # not Linux
        return 0.0
