"""The answer: what each side takes for markers, beside each other and on a store that is far away."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from tallymark.bench.answer import heading
from tallymark.bench.machine import Machine
from tallymark.bench.markers.alone import Alone
from tallymark.bench.markers.effort import Effort
from tallymark.bench.markers.measured import Acks, Job

OURS = "ours"
"""The side that others are held against."""

ACK_BAR = 5.0
"""By how much our mean ack, and the 99th percentile, are to be below those of Hudi's server, for few callers."""

RATE_BAR = 1.0
"""Our acked markers a second over those of Hudi's server, for many."""

BYTES_BAR = 50.0
"""By how much fewer bytes than Hudi's server ours is to write for a whole job."""

WRITTEN_BAR = 4.0
"""Bytes that are written for each byte of markers."""

OBJECTS_BAR = 20
"""Segments that a whole job leaves."""

DELETED_BAR_S = 1.0
"""To drop them, at 30 ms a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AckRow:
    side: str
    title: str
    acks: Acks


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRow:
    side: str
    title: str
    job: Job


@dataclass(frozen=True, slots=True, kw_only=True)
class PacedRow:
    side: str
    title: str
    job: Job
    points: tuple[tuple[int, int], ...]
    """Markers, and bytes written by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """Ours against another side, in one run: above 1 is in our favour."""

    what: str
    title: str
    """Of the other."""
    times: float
    bar: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRows:
    """One load, all sides in turn."""

    load: str
    is_open: bool
    """Callers ask at moments of their own, and not when they have an answer."""
    rows: tuple[AckRow, ...]

    def held(self) -> Iterator[Held]:
        """Against Hudi's server, as it is by itself and at its best."""
        ours = next((row.acks for row in self.rows if row.side == OURS), None)
        for row in self.rows:
            if ours is None or not is_hudi(row.side):
                continue
            if self.is_open:
                mean, p99 = row.acks.mean_s / ours.mean_s, row.acks.latency.p99_s / ours.latency.p99_s
                yield Held(what="mean ack, times lower", title=row.title, times=mean, bar=ACK_BAR)
                yield Held(what="99 % of acks, times lower", title=row.title, times=p99, bar=ACK_BAR)
            else:
                rate = ours.rate / row.acks.rate
                yield Held(what="markers a second, times as many", title=row.title, times=rate, bar=RATE_BAR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    loads: tuple[LoadRows, ...]
    jobs: tuple[JobRow, ...]
    paced_load: str = ""
    paced: tuple[PacedRow, ...] = ()

    def held(self) -> Iterator[Held]:
        for load in self.loads:
            yield from load.held()
        largest = max((row.job.acks.count for row in self.jobs), default=0)
        yield from _fewer([row for row in self.jobs if row.job.acks.count == largest], f"bytes for {largest:,} markers")
        yield from _fewer(self.paced, "bytes at the pace of a job")


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkersAnswer:
    began: datetime
    machine: Machine
    effort: Effort
    where: str
    """Of the sides beside each other."""
    beside: Beside
    trials: Mapping[str, float]
    """Mean acks of the settings of Hudi's server that were tried, by their titles."""
    far: str
    """Of the published table."""
    published: tuple[JobRow, ...]
    alone: Alone
    absent: Mapping[str, str]
    """By title, why a side took no part."""
    load_after: float = 0.0
    """Processes that ran or waited for a core in the minute before the end."""

    def document(self) -> dict[str, Any]:
        """Times are seconds."""
        return {
            **heading("markers", self.began, self.machine, asdict(self.effort)),
            "load_after": self.load_after,
            "where": self.where,
            "beside": asdict(self.beside),
            "held": [asdict(held) for held in self.beside.held()],
            "trials": dict(self.trials),
            "far": self.far,
            "published": [asdict(row) for row in self.published],
            "alone": self.alone.document(),
            "absent": dict(self.absent),
        }


def is_hudi(side: str) -> bool:
    return side.startswith("hudi")


def _fewer(jobs: Sequence[JobRow | PacedRow], what: str) -> Iterator[Held]:
    ours = next((row.job.acks.sent_bytes for row in jobs if row.side == OURS), None)
    for row in jobs:
        if ours and is_hudi(row.side) and (theirs := row.job.acks.sent_bytes) is not None:
            yield Held(
                what=f"{what}, times fewer",
                title=row.title,
                times=theirs / ours,
                bar=BYTES_BAR,
            )
