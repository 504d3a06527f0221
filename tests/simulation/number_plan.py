"""Who begins slowly: a writer that stands still when it has looked for a number, while others take it, and pass."""

import random
from dataclasses import replace

from tests.simulation.plan import AttemptPlan, Mishap, Plan, TaskPlan, WriterPlan, draw_host
from tests.simulation.weather import Weather

LOOK = ("get", "/begun/")
"""The landmark: it asks for the numbers that others may have."""


def with_numbers(chance: random.Random, plan: Plan) -> Plan:
    """In some runs the first writer begins slowly, as on a machine that swaps, and two others quickly meanwhile."""
    if chance.random() >= 1 / 12:
        return plan
    first, *others = plan.writers
    mishap = Mishap(
        what="stopped",
        after=LOOK,
        at_step=chance.choice((1, 2, 3, 4)),
        for_s=chance.choice((5.0, 30.0)),
        dies_after_steps=chance.choice((0, 100, 200, 400, 800)),
    )
    slow = replace(first, start_s=0.0, clock_s=chance.choice((0.0, 60.0, 60.0)), thinks_s=None, txn=None, mishap=mishap)
    quick = tuple(_quick(draw_host(chance), start_s) for start_s in (0.2, 2.0))
    weather = Weather() if chance.random() < 2 / 3 else plan.weather
    others = others if chance.random() < 1 / 3 else []
    return replace(plan, writers=(slow, *others, *quick), weather=weather, has_past=True)


def _quick(host: str, start_s: float) -> WriterPlan:
    task = TaskPlan(months=(1,), attempts=(AttemptPlan(host=host, start_s=0.0, row_s=0.0),))
    return WriterPlan(
        host=host, start_s=start_s, clock_s=0.0, mode="append", dynamic=False, kind="batched", tasks=(task,)
    )
