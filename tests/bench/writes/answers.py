"""Answers to ``writes`` whose figures are made up."""

from datetime import UTC, datetime

from tallymark.bench.machine import Machine
from tallymark.bench.writes.answer import WriteAnswer, WriteRow, WriteSection
from tallymark.bench.writes.order import Done
from tallymark.bench.writes.process_tree import Spent
from tallymark.bench.writes.published import PUBLISHED
from tallymark.bench.writes.rounds import RoundMethod


def row(side: str, title: str, *wall_s: float, **figures: float) -> WriteRow:
    """Writes that took so long, and twice as much CPU, a quarter of it Python's."""
    return WriteRow(side=side, title=title, done=tuple(_done(seconds, figures) for seconds in wall_s))


def _done(seconds: float, figures: dict[str, float]) -> Done:
    spent = Spent(driver_s=0, jvm_s=1.5 * seconds, python_s=0.5 * seconds, forks_s=0)
    return Done(wall_s=seconds, spent=spent, figures=figures)


def section(*rows: WriteRow, **absent: str) -> WriteSection:
    return WriteSection(
        case="dynamic-overwrite",
        label="dynamic overwrite: 10 rows",
        place="local disk",
        files=300,
        where="a <disk> & more",
        rows=rows,
        absent=absent,
        published=PUBLISHED["dynamic-overwrite"],
    )


def answer(*sections: WriteSection) -> WriteAnswer:
    machine = Machine(
        cpu="A CPU", core_count=2, memory_bytes=24 << 30, kernel="Linux 6.1", python="CPython 3.11.7",
        libraries={"pyspark": "4.3.0"}, load=0.5,
    )  # fmt: skip
    return WriteAnswer(datetime(2026, 11, 21, 8, 0, tzinfo=UTC), machine, RoundMethod(), sections)
