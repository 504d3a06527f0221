"""Memory of a service: what it has of tables and instants, of which the least recently used is released first.

Instants that were used a short time ago are not released: to serve one again takes one of its 1,024 incarnations
(``segment``), and its markers are read again. While such instants need all of the memory, no others are opened.

Sizes are estimates, from constants that ``tests/engine/serve/test_memory.py`` compares with what Python allocates.
Everything released is read again from storage on the next request.
"""

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import anyio

from tallymark.engine.errors import Overloaded
from tallymark.engine.timeline.log import CommitLog

DEFAULT_BYTES = 512 << 20
"""Limit where nothing else is set: the markers of 1,000 jobs with 1,000 files each, and some views of large tables."""

TABLE_BYTES = 64 * 1024
"""Of an open table: its storage, its log and an empty view."""

INSTANT_BYTES = 36 * 1024
"""Of an instant that takes markers: its tasks, queue and statistics."""

MARKER_BYTES = 480
"""Of a durable marker: a line of 150 characters in a set, and in a segment that a merge keeps."""

ENTRY_BYTES = 2048
"""Of an entry of the log, without its files."""

FILE_BYTES = 1024
"""Of a file that an entry adds or removes, in the entry and in the changes that no query has read yet."""

RECENT_S = 60.0
"""Time after its last request in which an instant is not released: an instant of a day is served again at most once per
minute and a half.
"""

CHECK_S = 1.0
"""Time between two sums over everything: of 1,000 instants one takes a millisecond."""

RETRY_S = 5.0
"""Time after which a refused client retries: what requests need now can be released then."""

SLACK = 0.9
"""Share of the limit that is left in use by a release, so that the next request does not cause another."""


class Users:
    """Requests that need a table, or an instant, to stay in memory."""

    def __init__(self) -> None:
        self._count = 0
        self._last = -math.inf

    @property
    def is_idle(self) -> bool:
        return not self._count

    def idle_s(self) -> float:
        """Return the seconds since the last of them has ended."""
        return anyio.current_time() - self._last

    @contextmanager
    def one(self) -> Iterator[None]:
        self._count += 1
        try:
            yield
        finally:
            self._count -= 1
            self._last = anyio.current_time()


class LogBytes:
    """Estimate of what the entries of a log use, summed again when there are more of them."""

    def __init__(self, log: CommitLog) -> None:
        self._log = log
        self._summed = (0, 0)
        self._bytes = 0

    def now(self) -> int:
        history = self._log.history
        if (history.base, history.head) != self._summed:
            self._summed = history.base, history.head
            self._bytes = sum(
                ENTRY_BYTES + FILE_BYTES * (len(entry.added) + len(entry.removed))
                for _, entry in history.after(history.base)
            )
        return self._bytes


@dataclass(frozen=True, slots=True)
class _Held:
    size: Callable[[], int]
    release: Callable[[], None]


class Memory:
    """Everything that one service may release, whichever listener uses it. Belongs to one event loop."""

    def __init__(self, limit_bytes: int, *, recent_s: float = RECENT_S) -> None:
        self._limit_bytes = limit_bytes
        self.recent_s = recent_s
        self._held: OrderedDict[object, _Held] = OrderedDict()
        self._checked_at = 0.0
        self._known_bytes = 0
        """At the last sum, with what was added and released since."""

    def measure(self) -> int:
        """Return the estimated bytes of everything."""
        self._known_bytes = sum(held.size() for held in self._held.values())
        return self._known_bytes

    def check_room(self) -> None:
        """Return if something may be opened.

        Raises:
            Overloaded: the limit is reached, and requests need everything.
        """
        self._make_room()
        if self._known_bytes > self._limit_bytes:
            raise Overloaded(
                f"the service has reached its memory limit of {self._limit_bytes >> 20} MiB, and requests need all of "
                "it; give it more with --memory-mb, or run another service",
                retry_after_s=RETRY_S,
            )

    def add(self, key: object, size: Callable[[], int], release: Callable[[], None]) -> None:
        """Count something that was opened. ``release`` frees what no request needs, and calls ``forget`` if that is all
        of it.
        """
        self._held[key] = _Held(size, release)
        self._known_bytes += size()

    def used(self, key: object) -> None:
        """Record that a request uses it."""
        self._held.move_to_end(key)
        if anyio.current_time() >= self._checked_at + CHECK_S:
            self._make_room(is_due=True, keep=key)

    def forget(self, key: object) -> None:
        """Record that it was released."""
        held = self._held.pop(key, None)
        if held is not None:
            self._known_bytes -= held.size()

    def _make_room(self, *, is_due: bool = False, keep: object = None) -> None:
        if not is_due and self._known_bytes <= self._limit_bytes:
            return
        self._checked_at = anyio.current_time()
        if self.measure() <= self._limit_bytes:
            return
        for key, held in list(self._held.items()):
            if self._known_bytes <= SLACK * self._limit_bytes:
                break
            if key is not keep and key in self._held:
                before = held.size()
                held.release()
                if key in self._held:
                    self._known_bytes -= before - held.size()
