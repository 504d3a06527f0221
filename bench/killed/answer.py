"""The answer: what each side left behind, by what was killed."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from tallymark.bench.answer import heading
from tallymark.bench.killed.folder import Remains
from tallymark.bench.machine import Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class KilledRow:
    """One side. Rows are held against those of whole writes."""

    side: str
    title: str
    executor: Remains
    """After a write one of whose executors was killed, and which Spark finished."""
    job: Remains
    """After all of a job was killed."""
    job_then: Remains
    """And after the next write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KilledAnswer:
    began: datetime
    machine: Machine
    rows_a_write: int
    rows: tuple[KilledRow, ...]
    absent: Mapping[str, str]
    """By title, why it took no part."""

    def document(self) -> dict[str, Any]:
        head = heading("killed", self.began, self.machine, {"rows_a_write": self.rows_a_write})
        return {**head, "sides": [asdict(row) for row in self.rows], "absent": dict(self.absent)}
