"""What a side is: one way of making markers durable."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from tallymark.bench.markers.load import Seen
from tallymark.bench.markers.talk import Address

OVER_CONNECTIONS = "tallymark.bench.markers.caller"
AS_TASKS = "tallymark.bench.markers.task_caller"

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """So far, by whoever makes markers durable. None: that cannot be said."""

    cpu_s: float | None = None
    """Of its process; None where it has none of its own."""
    puts: int | None = None
    """Objects or files that were written, as often as they were."""
    sent_bytes: int | None = None
    """That it gave to the store, and perhaps to its callers: ``to_store`` knows."""
    disk_bytes: int | None = None
    """That it caused to be written to a disk, in whole pages."""

    def __sub__(self, before: "Spent") -> "Spent":
        return Spent(
            cpu_s=_less(self.cpu_s, before.cpu_s),
            puts=_less(self.puts, before.puts),
            sent_bytes=_less(self.sent_bytes, before.sent_bytes),
            disk_bytes=_less(self.disk_bytes, before.disk_bytes),
        )

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(
            cpu_s=_sum(self.cpu_s, other.cpu_s),
            puts=_sum(self.puts, other.puts),
            sent_bytes=_sum(self.sent_bytes, other.sent_bytes),
            disk_bytes=_sum(self.disk_bytes, other.disk_bytes),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """In the folder of an instant, once all has come to rest."""

    objects: int
    """All of them, what announces the markers included."""
    segments: int
    """Of these, those that hold markers."""


class OpenSide(Protocol):
    """Each ``instant`` is a job of its own: it begins with no markers."""

    def to_store(self, spent: Spent, found: Seen) -> Spent:
        """What of that, for what its callers have seen, went to the store."""
        ...

    def address(self, instant: str) -> Address:
        """For callers, and which ``program`` they are."""
        ...

    def spent(self, instant: str) -> Spent: ...

    def settle(self, instant: str) -> Left: ...

    def delete(self, instant: str) -> float:
        """Drop the markers of an instant; the seconds it took."""
        ...


class Side(Protocol):
    """Opened where it is measured.

    Opening raises OSError, SubprocessError or TallymarkError where the side cannot take part.
    """

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def is_filled(self) -> bool:
        """Whether a whole large job is measured of it."""
        ...

    def opened(self) -> AbstractContextManager[OpenSide]: ...


def _less(now: Number | None, before: Number | None) -> Number | None:
    return None if now is None or before is None else now - before


def _sum(one: Number | None, other: Number | None) -> Number | None:
    return None if one is None or other is None else one + other
