"""The answer: what each way of sizing leaves of each shape, what it costs, and what no way could do better."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from tallymark.bench.answer import heading
from tallymark.bench.machine import Machine
from tallymark.bench.sizing.figures import PARTS, Figures
from tallymark.bench.sizing.frontier import Point, cheapest, fewest
from tallymark.bench.sizing.sides import BARRED_BUDGETS
from tallymark.bench.sizing.speed import Speed
from tallymark.bench.sizing.written.answer import WrittenSection
from tallymark.bench.sizing.written.fill import FillMemory

FRONTIER_BAR = 1.1
"""Files and bytes written of the balanced policy over those of the exact solver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingRow:
    side: str
    title: str
    figures: Figures
    first: Figures | None = None
    """After the first commit, where that is one of the whole."""
    budget: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingSection:
    """One shape."""

    shape: str
    label: str
    max_file_bytes: int
    rows: tuple[SizingRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """The files that one policy plans for the published example."""

    title: str
    rows: tuple[int, ...]
    """Incoming ones of each planned file, those that fill first."""
    fills: int
    is_as_published: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier:
    """Equal appends to equal partitions."""

    label: str
    appends: int
    partitions: int
    rows: tuple[SizingRow, ...]

    def files(self, row: SizingRow) -> float:
        """Of one partition."""
        return row.figures.files / self.partitions

    def fewest(self, row: SizingRow) -> Point:
        """The exact solver's, for no more bytes than the row has rewritten."""
        return fewest(self.appends, row.figures.rewritten)

    def cheapest(self, row: SizingRow) -> Point:
        """The exact solver's, for as many files."""
        return cheapest(self.appends, round(self.files(row)))

    def is_in_bar(self, row: SizingRow) -> bool | None:
        """None where none is set."""
        if row.budget not in BARRED_BUDGETS:
            return None
        has_few_files = self.files(row) <= FRONTIER_BAR * self.fewest(row).files
        least = self.cheapest(row).rewritten
        return has_few_files and 1 + row.figures.rewritten <= FRONTIER_BAR * (1 + least)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingAnswer:
    began: datetime
    machine: Machine
    examples: tuple[Example, ...]
    frontier: Frontier
    at_once: tuple[SizingSection, ...]
    """Shapes whose commits are each of the whole."""
    streams: tuple[SizingSection, ...]
    """Shapes as they arrive."""
    speeds: tuple[Speed, ...]
    written: tuple[WrittenSection, ...] = ()
    """Shapes that Spark has written; none where only plans were asked for."""
    written_method: str = ""
    fills: tuple[FillMemory, ...] = ()
    """What tasks that fill a large file have held, measured with what is written."""

    def document(self) -> dict[str, Any]:
        head = heading("sizing", self.began, self.machine, {"histogram_parts": list(PARTS)})
        return {
            **head,
            "examples": [asdict(example) for example in self.examples],
            "frontier": {
                "label": self.frontier.label,
                "rows": [self._point(row) for row in self.frontier.rows],
            },
            "at_once": _sections(self.at_once),
            "streams": _sections(self.streams),
            "speeds": [asdict(speed) for speed in self.speeds],
            "written_method": self.written_method,
            "written": [section.document() for section in self.written],
            "fills": [asdict(fill) for fill in self.fills],
        }

    def _point(self, row: SizingRow) -> dict[str, Any]:
        frontier = self.frontier
        exact = {"fewest": asdict(frontier.fewest(row)), "cheapest": asdict(frontier.cheapest(row))}
        return {
            **asdict(row),
            "files_a_partition": frontier.files(row),
            "exact": exact,
            "in_bar": frontier.is_in_bar(row),
        }


def _sections(sections: Sequence[SizingSection]) -> list[dict[str, Any]]:
    return [asdict(section) for section in sections]
