"""What one load costs one side: latencies that callers see, and CPU, puts and bytes of the process that is measured."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from subprocess import SubprocessError

from tallymark.backends.errors import TallymarkError
from tallymark.bench.load import Load, Seen, run_load
from tallymark.bench.markers.sides import Counts, OpenSide, Side, instant
from tallymark.bench.markers.targets import MARKER_BYTES

_instants = map(instant, count(1))


def new_instant() -> str:
    """Return an instant that no side has had."""
    return next(_instants)


@dataclass(slots=True)
class Taken:
    """What one load of one side has cost."""

    seen: Seen
    counts: Counts

    def __add__(self, other: "Taken") -> "Taken":
        return Taken(self.seen + other.seen, _added(self.counts, other.counts))

    @property
    def amplification(self) -> float | None:
        """The bytes that were written per byte of markers."""
        sent = self.counts["sent_bytes"]
        return sent / (self.seen.answered * MARKER_BYTES) if sent else None

    @property
    def cpu_us(self) -> float | None:
        spent = self.counts["cpu_s"]
        return None if spent is None else spent / self.seen.answered * 1e6


@dataclass(frozen=True, slots=True)
class Opened:
    side: Side
    open: OpenSide


def open_sides(
    sides: Iterable[Side], load: Load, logs: Path, stack: ExitStack, absent: dict[str, str]
) -> Iterator[Opened]:
    """Open sides for as long as the stack is open, and warm each up by the load. Sides that cannot are ``absent``."""
    for side in sides:
        try:
            with ExitStack() as own:
                found = own.enter_context(side.opened())
                take(found, load, logs)
                stack.push(own.pop_all())
        except (TallymarkError, OSError, SubprocessError) as error:
            absent[side.title] = first_line(error)
        else:
            yield Opened(side, found)


def take(side: OpenSide, load: Load, logs: Path) -> Taken:
    target, before = side.target(new_instant()), side.counts()
    seen = run_load(target, load, logs)
    return Taken(seen, side.stored(less(side.counts(), before), seen))


def less(now: Counts, before: Counts) -> Counts:
    return {name: _both(value, before[name], -1) for name, value in now.items()}


def first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _added(one: Counts, other: Counts) -> Counts:
    return {name: _both(value, other[name], 1) for name, value in one.items()}


def _both(one: float | None, other: float | None, sign: int) -> float | None:
    return None if one is None or other is None else one + sign * other
