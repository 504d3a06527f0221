"""The kinds of runs: write jobs on a table, and servers of markers without one. Its seed says which one a run is."""

import random

from tests.simulation.judge import judge as judge_tables
from tests.simulation.keyed.draw import with_keys
from tests.simulation.lives.draw import with_damage, with_replacement
from tests.simulation.lives.halts import with_halts
from tests.simulation.markers.marker_judge import judge_markers
from tests.simulation.markers.marker_plan import MarkerPlan, draw_markers
from tests.simulation.markers.marker_world import MarkerOutcome, run_markers
from tests.simulation.plan import Plan
from tests.simulation.plan import draw as draw_tables
from tests.simulation.shared.draw import with_services
from tests.simulation.together.draw import with_groups, with_streams
from tests.simulation.variations import with_checkpoints, with_fills, with_leases, with_viewers
from tests.simulation.world import Outcome
from tests.simulation.world import run as run_tables

AnyPlan = Plan | MarkerPlan
AnyOutcome = Outcome | MarkerOutcome

MARKERS_ONLY = 0.25
"""Share of seeds that play without a table."""


def draw(seed: int) -> AnyPlan:
    """The kind has a source of chance of its own, as has each part that came later: what others draw stays."""
    if random.Random(f"{seed}/kind").random() < MARKERS_ONLY:
        return draw_markers(seed)
    plan = with_fills(random.Random(f"{seed}/fills"), draw_tables(seed))
    plan = with_leases(random.Random(f"{seed}/leases"), plan)
    plan = with_viewers(random.Random(f"{seed}/viewers"), plan)
    plan = with_checkpoints(random.Random(f"{seed}/checkpoints"), plan)
    plan = with_replacement(random.Random(f"{seed}/replacement"), plan)
    plan = with_damage(random.Random(f"{seed}/damage"), plan)
    plan = with_halts(random.Random(f"{seed}/halts"), plan)
    plan = with_keys(random.Random(f"{seed}/keys"), plan)
    plan = with_services(random.Random(f"{seed}/services"), plan)
    plan = with_groups(random.Random(f"{seed}/groups"), plan)
    return with_streams(random.Random(f"{seed}/streams"), plan)


def run(plan: AnyPlan) -> AnyOutcome:
    """Play the plan to its end. Raises Stuck if a task waits permanently."""
    return run_markers(plan) if isinstance(plan, MarkerPlan) else run_tables(plan)


def judge(outcome: AnyOutcome) -> None:
    """Raises AssertionError with the history of the run, if a promise was broken."""
    if isinstance(outcome, MarkerOutcome):
        judge_markers(outcome)
    else:
        judge_tables(outcome)


def shown(plan: AnyPlan) -> list[str]:
    """The parts of a plan, one a line."""
    if isinstance(plan, MarkerPlan):
        settings = plan.servers[0].settings
        servers = [str(server).replace(f"settings={settings}, ", "") for server in plan.servers]
        return [f"settings of all servers: {settings}", *servers, *map(str, plan.clients), *map(str, plan.visitors)]
    return [
        *map(str, plan.writers),
        *map(str, plan.visitors),
        *map(str, plan.viewers),
        *map(str, plan.services),
        *map(str, plan.streams),
    ]
