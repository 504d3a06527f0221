"""That jobs of one process are decided together, and appends repeated, where a plan says so."""

from dataclasses import replace

from tests.simulation.fault_profile import FaultProfile
from tests.simulation.judge import judge
from tests.simulation.occurrences import occurrences
from tests.simulation.plan import AttemptPlan, Mishap, Plan, ProducerPlan, StreamPlan, TaskPlan, VisitorPlan, WriterPlan
from tests.simulation.world import run

CALM = Plan(
    seed=1, has_staging=False, faults=FaultProfile(), writers=(), visitors=(), rescuer_host="beta", has_past=True
)


def played(plan: Plan) -> dict[str, int]:
    outcome = run(plan)
    judge(outcome)
    return {name: count for name, count in occurrences(outcome).items() if count}


def writer(number: int, **differs) -> WriterPlan:
    task = TaskPlan(months=(1,), attempts=(AttemptPlan(host="alpha", start_s=0.0, row_s=0.0),))
    plan = WriterPlan(
        host="alpha", start_s=0.001 * number, clock_s=0.0, mode="append", dynamic=False, kind="batched", tasks=(task,)
    )
    return replace(plan, driver=1, **differs)


def test_jobs_of_one_process_that_wait_for_an_entry_share_the_next_one():
    jobs = (writer(0, entry_fates=("slow",)), writer(1), writer(2))
    occurred = played(replace(CALM, writers=jobs))
    assert occurred["commits of one process share an entry of the log"] == 1


def test_jobs_of_one_process_share_an_entry_whose_put_is_not_answered():
    jobs = (writer(0, entry_fates=("slow", "lost answer")), writer(1), writer(2))
    occurred = played(replace(CALM, writers=jobs))
    assert occurred["the put of an entry that decides several commits is unclear"] == 1


def test_one_of_those_that_wait_is_rolled_back_and_the_others_commit():
    jobs = (writer(0, entry_fates=("slow",)), writer(1), writer(2), writer(3))
    operator = VisitorPlan(host="beta", what="roll back one", at_s=(0.0,), is_at_entry=True)
    occurred = played(replace(CALM, writers=jobs, visitors=(operator,)))
    assert occurred["of jobs of one process one is rolled back by another process, and the others commit together"] == 1


def test_appends_of_a_driver_that_dies_at_its_entry_are_repeated_and_written_once():
    killed = Mishap(what="killed", at_step=0, after=("put", "/log/"))
    producer = ProducerPlan(months=(1, 2, 1), pause_s=0.0)
    stream = StreamPlan(host="alpha", start_s=0.0, producers=(producer,), mishaps=(killed,))
    occurred = played(replace(CALM, streams=(stream,)))
    assert occurred["a driver of a stream dies"] == 1
    assert occurred["an append is repeated that was committed, and nothing is written"] == 1


def test_a_repeat_meets_the_entry_of_a_dead_driver_that_lands_late():
    killed = Mishap(what="killed", at_step=0, after=("put", "/log/"))
    producer = ProducerPlan(months=(1,), pause_s=0.0)
    stream = StreamPlan(
        host="alpha",
        start_s=0.0,
        producers=(producer,),
        mishaps=(killed,),
        entry_fates=("late landing",),
        pause_s=0.15,
    )
    met = [played(replace(CALM, seed=seed, streams=(stream,))) for seed in range(8)]
    assert any(occurred.get("an append finds at its commit that its first entry has landed") for occurred in met)
