"""Variations of a drawn plan: a driver that runs several jobs at once, and streams."""

import random
from dataclasses import replace
from typing import Any

from tests.simulation.plan import AttemptPlan, EntryFate, Mishap, Plan, TaskPlan, VisitorPlan, WriterPlan, draw_host

GROUPS_SHARE = 1 / 10
"""Of the runs."""

COMMIT_LANDMARKS = (("put", "/log/"), ("put", "/log/"), ("put", "/seal/"), ("put", "/open/"), ("put", ".inflight"))
"""Of a driver whose jobs commit at the same time."""

ENTRY_FATES: tuple[tuple[EntryFate, ...], ...] = (
    ("slow",),
    ("slow", "slow"),
    ("slow", "lost answer"),
    ("slow", "lost request"),
    ("slow", "late landing"),
    ("lost answer", "slow"),
    ("late landing", "slow"),
)
"""Others wait for an entry that is slow, and the next one decides them together."""

OTHERS_MAX = 2
"""Writers that remain beside the driver."""


def with_groups(chance: random.Random, plan: Plan) -> Plan:
    """In some runs let the first writer's process run several other jobs at once by the same ``Table``."""
    if chance.random() >= GROUPS_SHARE or plan.replacement is not None or plan.damage is not None:
        return plan
    first, *others = plan.writers
    if chance.random() < 2 / 3:
        first = replace(first, mishap=_mishap(chance))
    fates = chance.choice(ENTRY_FATES)
    first = replace(first, driver=1, entry_fates=fates, start_s=min(first.start_s, 30.0), raises=False)
    beside = [_beside(chance, first, plan) for _ in range(chance.choice((2, 3, 3, 4)))]
    visitors = plan.visitors
    if chance.random() < 1 / 3:
        at_s = sorted(first.start_s + plan.faults.put_s * chance.choice((5, 10, 15, 20, 30)) for _ in range(2))
        visitors = (VisitorPlan(host=draw_host(chance), what="roll back one", at_s=tuple(at_s)),)
    return replace(plan, writers=(first, *beside, *others[-OTHERS_MAX:]), visitors=visitors)


def _mishap(chance: random.Random) -> Mishap:
    what: Any = chance.choice(("stopped", "stopped", "killed", "cancelled"))
    return Mishap(
        what=what,
        at_step=chance.choice((0, 0, 1, 2, 4, 8, 16)),
        after=chance.choice(COMMIT_LANDMARKS),
        for_s=chance.choice((0.1, 1.0, 30.0, 150.0, 190.0)) if what == "stopped" else 0.0,
    )


def _beside(chance: random.Random, first: WriterPlan, plan: Plan) -> WriterPlan:
    """Return a job of the same process, most often an append, whose commit may wait for that of another one."""
    late_s = plan.faults.put_s * chance.choice((0, 0, 0, 1, 3, 10))
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
