"""Variations of a drawn plan: tables that are replaced beside their jobs, and markers that others have changed."""

import random
from dataclasses import replace
from typing import Literal

from tests.simulation.plan import (
    AttemptPlan,
    DamagePlan,
    Mishap,
    Plan,
    ReplacementPlan,
    TaskPlan,
    WriterPlan,
    draw_host,
)

OUTLIVING_LANDMARKS = (
    ("put", "/beat/"),
    ("put", "/open/"),
    ("put", "/seal/"),
    ("put", "/seal/"),
    ("put", "/fence/"),
    ("data", ".parquet"),
)
"""Of a writer whose table is replaced while it pauses, or after it has died."""


def with_replacement(chance: random.Random, plan: Plan) -> Plan:
    """In some runs remove the table, or restore an older copy, while a job writes, pauses or is dead."""
    if chance.random() >= 1 / 8:
        return plan
    is_removed = chance.random() < 1 / 2
    number = chance.randrange(len(plan.writers))
    start_s = chance.choice((0.0, 3.0, 10.0))
    after_s = chance.choice((5, 10, 20, 40, 80)) * plan.faults.put_s * (0.5 + chance.random())
    writers = list(plan.writers)
    what: Literal["stopped", "killed"] | None = chance.choice((None, "stopped", "stopped", "killed"))
    if what is not None:
        after_s = chance.choice((10.0, 60.0, 130.0))
        mishap = Mishap(
            what=what,
            at_step=chance.choice((0, 0, 1, 2, 4, 8, 16)),
            after=chance.choice(OUTLIVING_LANDMARKS),
            for_s=after_s + chance.choice((2.0, 20.0, 150.0)) if what == "stopped" else 0.0,
        )
        writers[number] = replace(writers[number], mishap=mishap)
    writers[number] = replace(writers[number], start_s=start_s)
    at_s = start_s + after_s
    later = [
        _quick(chance, at_s + late_s)
        for late_s in chance.sample((0.0, 0.1, 1.0, 5.0, 30.0), chance.choice((0, 1, 2, 4)))
    ]
    before = [_quick(chance, 0.0)] if start_s else []
    return replace(
        plan,
        writers=(*writers, *before, *later),
        visitors=tuple(visitor for visitor in plan.visitors if visitor.what != "read under a lease"),
        viewers=(),
        body_bytes=1 << 20,
        kept_entries=64,
        has_past=plan.has_past or not is_removed,
        replacement=ReplacementPlan(at_s=at_s, copied_at_s=None if is_removed else 0.0),
    )


def with_damage(chance: random.Random, plan: Plan) -> Plan:
    """In some runs let the markers of a job name foreign files, or lose segments of a job that does not commit."""
    if chance.random() >= 1 / 8 or plan.replacement is not None:
        return plan
    what: Literal["foreign names", "emptied", "cut", "lost"] = chance.choice(
        ("foreign names", "foreign names", "emptied", "cut", "lost")
    )
    at_s = chance.choice((0.0, 0.0, 1.0, 10.0))
    if what == "lost":
        first, *others = plan.writers
        killed = Mishap(what="killed", at_step=chance.choice((0, 2, 8)), after=("put", "/MARKERS1"))
        plan = replace(plan, writers=(replace(first, kind="batched", mishap=killed), *others))
    return replace(plan, damage=DamagePlan(at_s=at_s, what=what), has_past=True)


def _quick(chance: random.Random, start_s: float) -> WriterPlan:
    """Return an append that nothing happens to."""
    host = draw_host(chance)
    task = TaskPlan(months=(1,), attempts=(AttemptPlan(host=host, start_s=0.0, row_s=0.0),))
    return WriterPlan(
        host=host, start_s=start_s, clock_s=0.0, mode="append", dynamic=False, kind="batched", tasks=(task,)
    )
