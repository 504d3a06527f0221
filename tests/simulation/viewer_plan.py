"""Who keeps a view of a run's table: when each reads the log, and of which position it asks."""

import random
from dataclasses import replace

from tests.simulation.plan import LookPlan, Mishap, Plan, ViewerPlan, draw_host

VIEW_LANDMARKS = (("get", "/log/"), ("get", "/log/"), ("put", "/read/"), ("list", "/open"))
"""Of somebody who follows a log: while it reads, and around its lease."""


def with_viewers(chance: random.Random, plan: Plan) -> Plan:
    """On half of the tables that have a past, and on all that keep what is replaced, somebody keeps a view."""
    is_spared = chance.random() < 1 / 2 and plan.retain_hours is None
    if not plan.has_past or is_spared:
        return plan
    moments = tuple(writer.start_s for writer in plan.writers)
    return replace(plan, viewers=tuple(_viewer(chance, plan, moments) for _ in range(chance.choice((1, 1, 2)))))


def _viewer(chance: random.Random, plan: Plan, moments: tuple[float, ...]) -> ViewerPlan:
    start_s = max(0.0, chance.choice(moments) - chance.choice((0.0, 0.0, 1.0)))
    spread_s = chance.choice((0.5, 5.0, 50.0, 200.0, 400.0))
    looks = [_look(chance, plan, spread_s) for _ in range(chance.choice((3, 5, 8)))]
    return ViewerPlan(
        host=draw_host(chance),
        start_s=start_s,
        looks=tuple(sorted(looks, key=lambda look: look.at_s)),
        mishap=_mishap(chance) if chance.random() < 1 / 3 else None,
    )


def _look(chance: random.Random, plan: Plan, spread_s: float) -> LookPlan:
    return LookPlan(
        at_s=spread_s * chance.random(),
        syncs=chance.random() < 1 / 2,
        of=chance.choice(("head", "head", "start", "back") if plan.retain_hours is None else ("head", "start", "back")),
        pause_s=chance.choice((0.0, 0.0, 0.1, 3.0, 30.0)),
        is_leased=plan.retain_hours is not None and chance.random() < 1 / 3,
    )


def _mishap(chance: random.Random) -> Mishap:
    if chance.random() < 1 / 4:
        return Mishap(what="killed", at_step=chance.choice((1, 20, 60)))
    for_s = chance.choice((1.0, 30.0, 100.0, 190.0))
    return Mishap(what="stopped", at_step=chance.choice((0, 1, 4)), after=chance.choice(VIEW_LANDMARKS), for_s=for_s)
