"""The answer: what each write of each side took, what follows of it, and who took no part and why."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from statistics import median
from typing import Any

from tallymark.bench.answer import OURS, heading
from tallymark.bench.machine import Machine
from tallymark.bench.paired import Estimate, compare, estimate
from tallymark.bench.writes.order import Done
from tallymark.bench.writes.published import Published
from tallymark.bench.writes.rounds import RoundMethod

Reading = Callable[[Done], float]


def wall(done: Done) -> float:
    return done.wall_s


def cpu(done: Done) -> float:
    return done.cpu_s


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteRow:
    """One side of one case."""

    side: str
    title: str
    done: tuple[Done, ...]

    def median(self, reading: Reading) -> float:
        return median(map(reading, self.done))

    def figure(self, name: str) -> float | None:
        """The median of what the writer said of itself, where it is a number."""
        found = [value for done in self.done if isinstance(value := done.figures.get(name), int | float)]
        return median(found) if found else None

    def ratio(self, ours: "WriteRow", reading: Reading) -> Estimate:
        """Ours over this side's."""
        return compare([*map(reading, ours.done)], [*map(reading, self.done)]).ratio

    def document(self, ours: "WriteRow | None") -> dict[str, Any]:
        found: dict[str, Any] = {
            "side": self.side,
            "title": self.title,
            "wall_s": asdict(estimate([*map(wall, self.done)])),
            "cpu_s": asdict(estimate([*map(cpu, self.done)])),
            "writes": [asdict(done) for done in self.done],
        }
        if ours is not None and ours is not self:
            found["ours_over_it"] = {"wall": asdict(self.ratio(ours, wall)), "cpu": asdict(self.ratio(ours, cpu))}
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSection:
    """One case on one place."""

    case: str
    label: str
    place: str
    where: str
    files: int
    """That the rows are spread over."""
    rows: tuple[WriteRow, ...]
    absent: Mapping[str, str]
    """By title, why it took no part."""
    published: tuple[Published, ...] = ()

    @property
    def ours(self) -> WriteRow | None:
        return next((row for row in self.rows if row.side == OURS), None)

    def document(self) -> dict[str, Any]:
        return {
            "case": self.case,
            "label": self.label,
            "place": self.place,
            "where": self.where,
            "files": self.files,
            "sides": [row.document(self.ours) for row in self.rows],
            "absent": dict(self.absent),
            "published": [asdict(line) for line in self.published],
        }


@dataclass(frozen=True, slots=True)
class WriteAnswer:
    began: datetime
    machine: Machine
    method: RoundMethod
    sections: tuple[WriteSection, ...]

    def document(self) -> dict[str, Any]:
        """Times are seconds a write; every interval is one of 95 %."""
        head = heading("writes", self.began, self.machine, asdict(self.method))
        return {**head, "sections": [section.document() for section in self.sections]}
