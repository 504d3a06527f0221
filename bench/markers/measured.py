"""What one load of one side came to."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tallymark.bench.markers.load import Load, Seen, seen
from tallymark.bench.markers.names import MARKER_BYTES
from tallymark.bench.markers.side import Left, OpenSide, Spent
from tallymark.bench.views.latency import Latency

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Acks:
    """Of some markers: how long they took, and what it took to make them durable."""

    count: int
    mean_s: float
    """From when a marker was due to its ack."""
    latency: Latency
    rate: float
    """Acked markers a second."""
    puts: int | None
    sent_bytes: int | None
    """To the store, merges and what is written again included."""
    disk_bytes: int | None
    """The same as the system counts it, in whole pages; 0 on a file system in memory."""
    cpu_us: float | None
    """A marker, of the process that makes them durable; None where the callers do."""
    caller_cpu_us: float
    """A marker, of the callers' processes, with their start: little tells more of long loads."""

    @classmethod
    def of(cls, found: Seen, spent: Spent) -> "Acks":
        return cls(
            count=found.answered,
            mean_s=found.mean_s,
            latency=found.latency,
            rate=found.rate,
            puts=spent.puts,
            sent_bytes=spent.sent_bytes,
            disk_bytes=spent.disk_bytes,
            cpu_us=None if spent.cpu_s is None else spent.cpu_s / found.answered * 1e6,
            caller_cpu_us=found.caller_cpu_s / found.answered * 1e6,
        )

    @property
    def payload_bytes(self) -> int:
        return self.count * MARKER_BYTES

    @property
    def amplification(self) -> float | None:
        """Bytes that were written for each byte of markers."""
        return None if self.sent_bytes is None else self.sent_bytes / self.payload_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The markers of one job, from none to the last, and until they are gone."""

    acks: Acks
    left: Left
    deleted_s: float

    @property
    def created_s(self) -> float:
        return self.acks.count / self.acks.rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """One load, before it is told in figures: those of several rounds may be joined."""

    found: Seen
    spent: Spent

    @property
    def acks(self) -> Acks:
        return Acks.of(self.found, self.spent)

    def __add__(self, other: "Taken") -> "Taken":
        return Taken(found=self.found + other.found, spent=self.spent + other.spent)


def take(side: OpenSide, instant: str, load: Load, logs: Path) -> Taken:
    """Callers ask the side for markers of the instant. Raises ChildFailed."""
    taken, _ = _taken(side, instant, load, logs, then=lambda: None)
    return taken


def whole_job(side: OpenSide, instant: str, load: Load, logs: Path) -> Job:
    """The same, and once merges have come to rest, which count, the markers go. Raises ChildFailed."""
    taken, left = _taken(side, instant, load, logs, then=lambda: side.settle(instant))
    return Job(acks=taken.acks, left=left, deleted_s=side.delete(instant))


def _taken(side: OpenSide, instant: str, load: Load, logs: Path, then: Callable[[], T]) -> tuple[Taken, T]:
    address = side.address(instant)
    before = side.spent(instant)
    found = seen(address, load, logs)
    done = then()
    return Taken(found=found, spent=side.to_store(side.spent(instant) - before, found)), done
