"""Whole jobs at the pace of jobs: markers come for minutes, for all sides at the same time, and bytes add up.

What a server writes that writes its files anew depends on how often it does, and so on how long a job takes; asked for
as many markers as fast as it can, it would seem to write little.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from tallymark.bench.markers.answer import PacedRow
from tallymark.bench.markers.beside import open_sides
from tallymark.bench.markers.effort import Effort
from tallymark.bench.markers.load import Load, Seen, seen
from tallymark.bench.markers.measured import Acks, Job
from tallymark.bench.markers.names import instant
from tallymark.bench.markers.side import OpenSide, Side, Spent

READINGS = 40
"""Of what each side has written, while its markers come."""

INSTANT = instant(99_000)


@dataclass(slots=True)
class _Running:
    side: Side
    open: OpenSide
    before: Spent
    seen: "Future[Seen]"
    readings: list[Spent]


def paced(
    sides: Iterable[Side], effort: Effort, logs: Path, absent: dict[str, str], tell: Callable[[str], None]
) -> tuple[PacedRow, ...]:
    """Sides that cannot take part are ``absent``, with the reason."""
    load = effort.paced
    with ExitStack() as stack, ThreadPoolExecutor() as threads:
        opened = list(open_sides(sides, effort, logs, stack, absent, tell))
        running = [_begin(each.side, each.open, load, logs, threads) for each in opened]
        began = time.monotonic()
        for number in range(1, READINGS + 1):
            tell(f"markers: {load}: {number} of {READINGS}")
            due = began + load.seconds * number / READINGS
            threading.Event().wait(max(0.0, due - time.monotonic()))
            for each in running:
                each.readings.append(each.open.spent(INSTANT) - each.before)
        return tuple(_row(each) for each in running)


def _begin(side: Side, opened: OpenSide, load: Load, logs: Path, threads: ThreadPoolExecutor) -> _Running:
    address, own = opened.address(INSTANT), logs / f"paced-{side.name}"
    own.mkdir()
    return _Running(side, opened, opened.spent(INSTANT), threads.submit(seen, address, load, own), [])


def _row(each: _Running) -> PacedRow:
    found = each.seen.result()
    left = each.open.settle(INSTANT)
    acks = Acks.of(found, each.open.to_store(each.open.spent(INSTANT) - each.before, found))
    points = tuple(_points(each, found))
    deleted_s = each.open.delete(INSTANT)
    job = Job(acks=acks, left=left, deleted_s=deleted_s)
    return PacedRow(side=each.side.name, title=each.side.title, job=job, points=points)


def _points(each: _Running, found: Seen) -> Iterator[tuple[int, int]]:
    """Markers, by the schedule, and bytes written for them."""
    for number, spent in enumerate(each.readings, start=1):
        share = number / READINGS
        then = replace(found, answered=int(found.answered * share), received_bytes=int(found.received_bytes * share))
        sent_bytes = each.open.to_store(spent, then).sent_bytes
        if sent_bytes is not None:
            yield then.answered, sent_bytes
