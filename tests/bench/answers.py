"""Answers whose figures are made up."""

from datetime import UTC, datetime

from tallymark.bench.answer import Answer, Row, Section
from tallymark.bench.backends import BAR
from tallymark.bench.machine import Machine
from tallymark.bench.method import Method, Samples
from tallymark.bench.paired import Bar

US = 1e-6


def answer(*sections: Section) -> Answer:
    machine = Machine(
        cpu="A <CPU> & more",
        core_count=2,
        memory_bytes=24 << 30,
        kernel="Linux 6.1",
        python="CPython 3.11.7",
        libraries={"obstore": "0.12.1"},
        load=0.5,
    )
    return Answer("backends", datetime(2026, 11, 21, 8, 0, tzinfo=UTC), machine, Method(), sections)


def section(*rows: Row) -> Section:
    return Section("S3", "a <server> of this harness", "obstore", rows)


def row(
    *, thread_us: float = 200, ours_us: float, label: str = "get 1 KiB", floor: bool = False, bar: Bar = BAR
) -> Row:
    """Six rounds in which the library is steady and ours lies up to 5 us below or above."""
    taken: dict[str, tuple[float, ...]] = {"plain": (0.8 * thread_us * US,) * 6, "thread": (thread_us * US,) * 6}
    taken["ours"] = tuple((ours_us + off) * US for off in (-5, -3, -1, 1, 3, 5))
    if floor:
        del taken["thread"]
    return Row(label, Samples(40, taken), "plain" if floor else "thread", None if floor else bar)
