"""Pace of writers of several processes that compete for the next entry of a log."""

import random

WAITS = (1, 1, 2, 4, 8, 16, 8, 4, 2)
"""Longest wait after each loss in a row, in times that the lost put took; the last one applies to all later losses.

It grows until a few of 64 writers try each number, so that the others' requests do not slow the one that wins. It
falls again for the writers that have waited longest, so that newer ones do not overtake them again and again.
"""

WAIT_S_MAX = 2.0
"""Longest wait: a put that took seconds was repeated by the client, and shows nothing about other writers."""


class Contention:
    """Losses in a row of one process, and what follows from them."""

    def __init__(self) -> None:
        self._losses = 0
        self._found = 1

    def lost(self, instant: str, put_s: float) -> float:
        """Return how long to wait before the log is read and the next number is tried, in seconds.

        It is uniform from 0 to its limit, so that writers that have lost together do not try together. It depends on
        the instant alone, so that a simulation can be repeated.
        """
        factor = WAITS[min(self._losses, len(WAITS) - 1)]
        self._losses += 1
        chance = random.Random(f"{instant}:{self._losses}").random()  # noqa: S311 (a spread, not a secret)
        return min(chance * factor * put_s, WAIT_S_MAX)

    def won(self) -> None:
        """Record that an entry of this process was put."""
        self._losses, self._found = 0, 1

    def has_read(self, count: int) -> None:
        """Record how many new entries a reading has found."""
        self._found = count

    @property
    def window(self) -> int:
        """Entries to request at once: after a loss as many as the last reading has found, and one that shows the end;
        otherwise one.
        """
        return max(self._found, 1) + 1 if self._losses else 1
