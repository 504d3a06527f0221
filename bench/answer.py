"""The answer to a question: rows of samples, with the machine and the method, as a document for JSON."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from tallymark.bench.machine import Machine
from tallymark.bench.method import Method, Samples
from tallymark.bench.paired import Bar, Comparison, Estimate, Verdict, compare, estimate, verdict

FORMAT = 1
"""Of the JSON file. Keys may be added; where one goes away or changes its meaning this number grows."""


OURS = "ours"
"""The name of our side in every row."""


@dataclass(frozen=True, slots=True)
class Row:
    """One case on one store."""

    label: str
    samples: Samples
    reference: str
    """The side that ``ours`` is held against."""
    bar: Bar | None
    """None where there is nothing to hold to."""
    concurrency: int = 1

    def per_call_s(self, side: str) -> Estimate:
        return estimate(self.samples.per_call_s[side])

    def against(self, side: str) -> Comparison:
        return compare(self.samples.per_call_s[OURS], self.samples.per_call_s[side])

    @property
    def verdict(self) -> Verdict | None:
        """Whether ours is within the bar beside the reference."""
        return self.verdict_against(self.reference)

    def verdict_against(self, side: str) -> Verdict | None:
        if self.bar is None:
            return None
        return verdict(self.samples.per_call_s[OURS], self.samples.per_call_s[side], self.bar)

    def document(self) -> dict[str, Any]:
        return {
            "label": self.label,
            "concurrency": self.concurrency,
            "calls_per_sample": self.samples.call_count,
            "rounds": len(self.samples.per_call_s[OURS]),
            "reference": self.reference,
            "verdict": self.verdict,
            "sides": {side: self._side(side) for side in self.samples.per_call_s},
        }

    def _side(self, side: str) -> dict[str, Any]:
        found: dict[str, Any] = {
            "per_call_s": asdict(self.per_call_s(side)),
            "samples_s": list(self.samples.per_call_s[side]),
        }
        if side != OURS:
            found["ours_against_it"] = {**asdict(self.against(side)), "verdict": self.verdict_against(side)}
        return found


@dataclass(frozen=True, slots=True)
class Section:
    """The rows of one store."""

    title: str
    where: str
    """What stands behind it: a file system, a server."""
    peer: str
    """The library beside ours."""
    rows: tuple[Row, ...]

    def document(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "where": self.where,
            "peer": self.peer,
            "rows": [row.document() for row in self.rows],
        }


@dataclass(frozen=True, slots=True)
class Answer:
    question: str
    began: datetime
    machine: Machine
    method: Method
    sections: tuple[Section, ...]

    @property
    def bars(self) -> str:
        """Those that its rows are held to, for people; empty where there are none."""
        found = dict.fromkeys(row.bar for section in self.sections for row in section.rows if row.bar is not None)
        return "; ".join(map(str, found))

    def document(self) -> dict[str, Any]:
        """Times are seconds a call; every interval is one of 95 %."""
        head = heading(self.question, self.began, self.machine, asdict(self.method))
        return {**head, "sections": [section.document() for section in self.sections]}


def heading(question: str, began: datetime, machine: Machine, method: dict[str, Any]) -> dict[str, Any]:
    """How every question's document begins."""
    return {
        "format": FORMAT,
        "question": question,
        "began": began.isoformat(timespec="seconds"),
        "machine": asdict(machine),
        "method": method,
    }
