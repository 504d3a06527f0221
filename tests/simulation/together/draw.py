"""Variations of a drawn plan: a driver that runs several jobs at once, and streams."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tests.simulation.fault_profile import FIRST_SEGMENT
from tests.simulation.plan import (
    AttemptPlan,
    EntryFate,
    Mishap,
    Plan,
    ProducerPlan,
    StreamPlan,
    TaskPlan,
    VisitorPlan,
    WriterPlan,
    draw_host,
)

GROUPS_SHARE = 1 / 12
"""Of the runs."""

COMMIT_LANDMARKS = (("put", "/log/"), ("put", "/log/"), ("put", "/seal/"), ("put", "/open/"), ("put", ".inflight"))
"""Of a driver whose jobs commit at the same time."""

ENTRY_FATES: tuple[tuple[EntryFate, ...], ...] = (
    ("slow",),
    ("slow",),
    ("slow",),
    ("slow",),
    ("slow", "lost answer"),
    ("slow", "lost request"),
    ("slow", "late landing"),
    ("lost answer", "slow"),
    ("late landing", "slow"),
    ("hanging",),
    ("slow", "hanging"),
)
"""Others wait for an entry that is slow, and the next one decides them together."""

OTHERS_MAX = 1
"""Writers that remain beside the driver."""


def with_groups(chance: random.Random, plan: Plan) -> Plan:
    """In some runs let the first writer's process run several other jobs at once by the same ``Table``."""
    if chance.random() >= GROUPS_SHARE or plan.replacement is not None or plan.damage is not None:
        return plan
    first, *others = plan.writers
    if chance.random() < 2 / 3:
        first = replace(first, mishap=_mishap(chance, COMMIT_LANDMARKS))
    fates = chance.choice(ENTRY_FATES)
    first = replace(first, driver=1, entry_fates=fates, start_s=min(first.start_s, 30.0), raises=False)
    visitors = plan.visitors
    if "hanging" in fates:
        first = replace(first, commits_again=True, mishap=None)
    elif fates == ("slow",) and chance.random() < 3 / 4:  # one of those that wait is rolled back in that time
        first = replace(first, mishap=None)
        visitors = (VisitorPlan(host=draw_host(chance), what="roll back one", at_s=(0.0,), is_at_entry=True),)
    beside = [_beside(chance, first, plan) for _ in range(chance.choice((2, 3, 3)))]
    return replace(plan, writers=(first, *beside, *others[-OTHERS_MAX:]), visitors=visitors)


STREAMS_SHARE = 1 / 16
"""Of the runs."""

FLUSH_LANDMARKS = (
    ("put", "/log/"),
    ("put", "/log/"),
    ("put", "/log/"),
    ("put", "/open/"),
    ("put", FIRST_SEGMENT),
    ("data", ".parquet"),
    ("put", ".inflight"),
    ("delete", "/.temp/"),
)
"""Of a driver of a stream."""

STREAM_FATES: tuple[tuple[EntryFate, ...], ...] = (
    (),
    ("slow",),
    ("lost answer",),
    ("late landing",),
    ("slow", "late landing"),
    ("slow", "lost request"),
)


def with_streams(chance: random.Random, plan: Plan) -> Plan:
    """In some runs add a stream, whose drivers die or pause, and whose producers repeat what they do not know."""
    is_special = plan.replacement is not None or plan.damage is not None or plan.unique_in is not None
    if chance.random() >= STREAMS_SHARE or is_special or any(writer.driver for writer in plan.writers):
        return plan
    request_s = plan.faults.put_s
    mishaps = tuple(_mishap(chance, FLUSH_LANDMARKS) for _ in range(chance.choice((0, 1, 1, 2))))
    fates = chance.choice(STREAM_FATES)
    if mishaps and chance.random() < 1 / 2:  # the first entry is on its way when its driver dies, or pauses
        mishaps = (replace(mishaps[0], after=("put", "/log/"), at_step=0), *mishaps[1:])
        fates = ("late landing",)
    stream = StreamPlan(
        host=draw_host(chance),
        start_s=chance.choice((0.0, 0.0, 0.5, 3.0)),
        producers=tuple(_producer(chance, request_s) for _ in range(chance.choice((1, 2, 2, 3)))),
        interval_s=chance.choice((0.0, 0.0, 0.05, 1.0)),
        worker_count=chance.choice((1, 2, 3, 3)),
        entry_fates=fates,
        mishaps=mishaps,
        pause_s=request_s * chance.choice((0, 5, 10, 20, 30)),
        patience_s=chance.choice((0.0, 1.0, 10.0, 140.0)),
    )
    return replace(plan, streams=(stream,), writers=plan.writers[-OTHERS_MAX:])


def _producer(chance: random.Random, request_s: float) -> ProducerPlan:
    return ProducerPlan(
        months=tuple(chance.choice((1, 2, 3)) for _ in range(chance.choice((1, 2, 3, 5)))),
        pause_s=request_s * chance.choice((0, 0, 1, 5, 20)),
        window=chance.choice((1, 1, 2, 3)),
        is_numbered=chance.random() < 5 / 6,
    )


def _mishap(chance: random.Random, landmarks: Sequence[tuple[str, str]]) -> Mishap:
    what: Any = chance.choice(("stopped", "stopped", "killed", "cancelled"))
    return Mishap(
        what=what,
        at_step=chance.choice((0, 0, 1, 2, 4, 8, 16)),
        after=chance.choice(landmarks),
        for_s=chance.choice((0.1, 1.0, 30.0, 150.0, 190.0)) if what == "stopped" else 0.0,
    )


def _beside(chance: random.Random, first: WriterPlan, plan: Plan) -> WriterPlan:
    """Return a job of the same process, most often an append, whose commit may wait for that of another one."""
    late_s = plan.faults.put_s * chance.choice((0, 0, 0, 1, 3, 10, 100))
    is_overwrite = chance.random() < 1 / 6
    months = (chance.choice((1, 2, 3)),)
    attempt = AttemptPlan(host=draw_host(chance), start_s=0.0, row_s=0.0)
    return WriterPlan(
        host=first.host,
        start_s=first.start_s + late_s,
        clock_s=0.0,
        mode="overwrite" if is_overwrite else "append",
        dynamic=is_overwrite,
        kind=chance.choice(("batched", "batched", "direct")),
        tasks=(TaskPlan(months=months, attempts=(attempt,)),),
        fill_bytes=4000 if not is_overwrite and chance.random() < 1 / 6 else 0,
        commits_again=chance.random() < 3 / 4,
        driver=1,
    )
