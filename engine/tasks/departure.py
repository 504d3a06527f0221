"""Whether other processes may have a ticket.

A job puts an object at its commit, after which no task of another process marks files itself (``markers.direct_flag``).
Where its ticket has never left the process, there is no such task, and the put is spared: a fifth of a commit's time.
"""

import os
import threading

from tallymark.engine.errors import Sealed

_forks = 0
"""Forks of this process and of those it was forked from. A child has every ticket of its parent."""


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(before=_count_fork)


class Departure:
    """One for a ticket and all copies of it in this process."""

    def __init__(self) -> None:
        self._deciding = threading.Lock()
        self._has_left = False
        self._is_closed = False
        self._forks = _forks

    def leave(self) -> None:
        """Record that the ticket leaves as bytes. Raises Sealed where the job relies on it that no other process has
        it.
        """
        with self._deciding:
            if self._is_closed:
                raise Sealed("the job is being committed, and takes no tasks of other processes any more")
            self._has_left = True

    def close(self) -> bool:
        """Return whether no other process has the ticket; then none gets it any more."""
        with self._deciding:
            self._is_closed = not self._has_left and self._forks == _forks
            return self._is_closed

    @property
    def is_closed(self) -> bool:
        """Whether no other process gets the ticket any more; in a child, as it was when that was forked."""
        return self._is_closed
