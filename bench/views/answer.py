"""The answer: for each size of table, what each side takes to be ready, to answer, to hold it and to follow it."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from statistics import median
from typing import Any

from tallymark.bench.answer import heading
from tallymark.bench.machine import Machine
from tallymark.bench.views.ground import Effort
from tallymark.bench.views.side import Followed, LookUps, Opening
from tallymark.bench.views.table import TableShape

P50_BAR_S, P99_BAR_S = 0.001, 0.010
"""Of ours over the wire, at any size."""

BYTES_BAR = 150
"""Of memory for each file, where partitions hold a hundred."""

READY_BAR_S = 2.0
"""From a checkpoint on the local disk to the answer for any partition, at a million files."""

SYNC_BAR = 1.5
"""What a commit takes to follow in the largest table over the smallest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """What commits of so many files took to follow."""

    files: int
    followed: tuple[Followed, ...]

    @property
    def synced_s(self) -> float:
        return median(found.synced_s for found in self.followed)

    @property
    def best_s(self) -> float:
        """To be synced, where others on the machine have disturbed least."""
        return min(found.synced_s for found in self.followed)

    @property
    def answered_s(self) -> float:
        return median(found.answered_s for found in self.followed)


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewRow:
    side: str
    title: str
    opening: Opening
    look_ups: LookUps
    syncs: tuple[Sync, ...] = ()

    @property
    def is_ours(self) -> bool:
        return self.side.startswith("ours")

    def sync(self, files: int) -> Sync | None:
        return next((sync for sync in self.syncs if sync.files == files), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewSection:
    """One size of table."""

    shape: TableShape
    rows: tuple[ViewRow, ...]

    @property
    def followed(self) -> tuple[int, ...]:
        """Files of the commits that were followed."""
        return tuple(dict.fromkeys(sync.files for row in self.rows for sync in row.syncs))

    def bytes_per_file(self, row: ViewRow) -> float | None:
        grown = row.opening.grown_bytes
        return None if grown is None else grown / self.shape.files

    def row(self, side: str) -> ViewRow | None:
        return next((row for row in self.rows if row.side == side), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewAnswer:
    began: datetime
    machine: Machine
    effort: Effort
    sections: tuple[ViewSection, ...]
    absent: Mapping[str, str]
    """By title, why a side took no part."""
    load_after: float = 0.0
    """Processes that ran or waited for a core in the minute before the end."""

    def growths(self) -> Iterator[tuple[str, int, float]]:
        """Title, files of a commit, and what following it takes at best in the largest table over the smallest."""
        first, last = self.sections[0], self.sections[-1]
        if first is last:
            return
        for row in first.rows:
            later = last.row(row.side)
            for sync in row.syncs:
                grown = None if later is None else later.sync(sync.files)
                if grown is not None:
                    yield row.title, sync.files, grown.best_s / sync.best_s

    def document(self) -> dict[str, Any]:
        """Times are seconds."""
        head = heading("views", self.began, self.machine, asdict(self.effort))
        return {
            **head,
            "load_after": self.load_after,
            "sections": [_section(section) for section in self.sections],
            "sync_growth": [{"title": title, "files": files, "ratio": ratio} for title, files, ratio in self.growths()],
            "absent": dict(self.absent),
        }


def _section(section: ViewSection) -> dict[str, Any]:
    return {
        "table": asdict(section.shape),
        "rows": [asdict(row) for row in section.rows],
    }
