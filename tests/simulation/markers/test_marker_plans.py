"""That runs without a table are runs like others: drawn by their seeds, the same every time, judged, and shrunk."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from unittest import mock

import pytest

from tallymark.engine.errors import TallymarkError
from tallymark.engine.markers.directory import MarkerDirectory
from tests.simulation.campaign import examine
from tests.simulation.fault_profile import FaultProfile
from tests.simulation.kind import AnyPlan, draw, shown
from tests.simulation.markers.marker_plan import MarkerPlan, draw_markers
from tests.simulation.markers.marker_world import run_markers
from tests.simulation.shrink import shrink, smaller_plans


def test_about_a_quarter_of_the_seeds_play_without_a_table():
    plans = [draw(seed) for seed in range(400)]
    assert 60 < sum(isinstance(plan, MarkerPlan) for plan in plans) < 140


@pytest.mark.parametrize("seed", range(40))
def test_every_promise_about_markers_is_kept(seed):
    assert examine(draw_markers(seed)) is None


def test_the_same_plan_is_the_same_run():
    for seed in range(10):
        assert repr(run_markers(draw_markers(seed)).history) == repr(run_markers(draw_markers(seed)).history)


@pytest.mark.slow
def test_runs_see_merges_restarts_refusals_and_lost_answers():
    occurred = sum(
        (run_markers(draw_markers(seed)).occurred for seed in range(1, 80)), start=run_markers(draw_markers(0)).occurred
    )
    assert {
        "a server's directories: close",
        "a server's directories: delete",
        "killed",
        "lost answer",
        "stopped",
        "markers only: acked",
        "markers only: given up",
        "markers only: refused as Closed",
        "markers only: refused as FlushFailed",
        "markers only: refused as RolledBack",
        "markers only: refused as Sealed",
    } <= occurred.keys()


@pytest.mark.slow
def test_a_swallowed_error_is_found_and_its_plan_shrinks():
    flush = MarkerDirectory.flush

    async def swallow(directory: MarkerDirectory, batch) -> None:
        try:
            await flush(directory, batch)
        except TallymarkError:
            return

    def fails(plan: AnyPlan) -> bool:
        return "acked before it was durable" in (examine(plan) or "")

    with mock.patch.object(MarkerDirectory, "flush", swallow):
        drawn: Iterator[AnyPlan] = map(draw_markers, range(400))
        found = islice(filter(fails, drawn), 2)  # one fails amid a merge, which takes 20 asks
        smaller = min([shrink(plan, fails) for plan in found], key=_asks)
        assert fails(smaller)
    assert isinstance(smaller, MarkerPlan)
    assert _asks(smaller) <= 3
    assert len(shown(smaller)) <= 4
    assert examine(smaller) is None


def _asks(plan: AnyPlan) -> int:
    assert isinstance(plan, MarkerPlan)
    return sum(len(server.requests) for server in plan.servers) + sum(len(client.requests) for client in plan.clients)


def test_smaller_plans_are_plans_that_can_be_played():
    plan = next(plan for plan in map(draw_markers, range(200)) if len(plan.servers) == 3 and len(plan.clients) > 1)
    for smaller in smaller_plans(plan):
        assert smaller != plan
        run_markers(replace(smaller, faults=FaultProfile()))
