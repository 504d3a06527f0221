"""That a campaign passes, that failures are counted as described, and that users can read what becomes of each."""

from collections import Counter
from pathlib import Path

import pytest

from tests.simulation.campaign import SEEDS_MIN, Totals, examine, print_missing
from tests.simulation.fault_profile import FaultProfile
from tests.simulation.kind import draw
from tests.simulation.occurrences import FAILURES, missing, occurrences
from tests.simulation.plan import AttemptPlan, Mishap, Plan, TaskPlan, WriterPlan
from tests.simulation.world import run


@pytest.mark.parametrize("seed", range(40))
def test_every_promise_is_kept(seed):
    assert examine(draw(seed)) is None


DOCS = Path(__file__).parents[2] / "docs" / "failure-modes.md"


def test_a_failure_that_never_occurred_fails_a_campaign_that_was_long_enough():
    been_through = Counter(FAILURES)
    assert print_missing(Totals(seeds=SEEDS_MIN, failures=been_through)) == []
    del been_through["both twins of a task succeed"]
    assert print_missing(Totals(seeds=SEEDS_MIN, failures=been_through)) == ["both twins of a task succeed"]
    assert print_missing(Totals(seeds=SEEDS_MIN - 1, failures=been_through)) == []


def test_no_failure_has_two_names():
    assert len(set(FAILURES)) == len(FAILURES)
    assert missing({}) == list(FAILURES)


def test_users_are_told_what_becomes_of_each_failure():
    """Several of one kind share a row: there the beginning of the name is left out after the first."""
    told = " ".join(DOCS.read_text("utf-8").split())
    untold = [
        name
        for name in FAILURES
        if f"*{name}*" not in told and f"*... {name.removeprefix('a writer is cancelled ')}*" not in told
    ]
    assert untold == []


def test_twins_that_both_succeed_are_counted_once():
    twins = tuple(AttemptPlan(host="beta", start_s=0.0, row_s=0.01) for _ in range(2))
    occurred = occurrences(run(_plan(TaskPlan(months=(1,), attempts=twins))))
    assert occurred["both twins of a task succeed"] == 1
    assert occurred["a writer dies while its tasks write"] == 0


def test_a_writer_that_is_killed_after_its_entry_counts_as_that_and_as_nothing_earlier():
    kill = Mishap(what="killed", at_step=0, after=("put", ".inflight"))
    task = TaskPlan(months=(1,), attempts=(AttemptPlan(host="alpha", start_s=0.0, row_s=0.0),))
    occurred = occurrences(run(_plan(task, mishap=kill)))
    dead = {name: count for name, count in occurred.items() if name.startswith("a writer dies") and count}
    assert dead == {"a writer dies after its entry": 1, "a writer dies between its entry and its projection": 1}
    assert occurred["a commit is finished by another process"] == 1


def _plan(task: TaskPlan, *, mishap: Mishap | None = None) -> Plan:
    """Return a plan of one writer of one task without faults, on a table that was written to before."""
    writer = WriterPlan(
        host="alpha", start_s=0.0, clock_s=0.0, mode="append", dynamic=False, kind="batched", tasks=(task,),
        mishap=mishap,
    )  # fmt: skip
    return Plan(
        seed=1,
        has_staging=False,
        faults=FaultProfile(),
        writers=(writer,),
        visitors=(),
        rescuer_host="alpha",
        has_past=True,
    )
