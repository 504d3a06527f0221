"""Variations of a drawn plan: processes stop, or lose their heartbeats, at the one moment at which a rule is needed."""

import random
from dataclasses import replace

from tests.simulation.fault_profile import FaultProfile
from tests.simulation.plan import AttemptPlan, Mishap, Plan, TaskPlan, VisitorPlan, WriterPlan, draw_host


def with_halts(chance: random.Random, plan: Plan) -> Plan:
    """In some runs let a job lose its heartbeats, or stop when it looks for direct markers, or a reader at a clean."""
    drawn = chance.random()
    if drawn < 2 / 32:
        return _muted(chance, plan)
    if drawn < 3 / 32:
        return _halted_at_its_flag(chance, plan)
    return _halted_at_a_clean(chance, plan) if drawn < 4 / 32 else plan


def _muted(chance: random.Random, plan: Plan) -> Plan:
    """An operator rolls back a job of which storage gets no heartbeats any more, while its tasks request markers."""
    tasks = tuple(_task(chance, row_s=2.0, rows=60) for _ in range(4))
    writer = _writer(chance, tasks, beats_lost_after_s=chance.choice((0.5, 15.0)))
    lost_at_s = 10.0 if writer.beats_lost_after_s > 10 else 0.0
    operator = VisitorPlan(
        host=draw_host(chance), what="roll back one", at_s=(lost_at_s + chance.choice((10.0, 30.0, 58.0, 60.0)),)
    )
    reset = chance.choice((0.0, 0.2, 0.3))
    faults = FaultProfile(put_s=chance.choice((0.002, 0.01)), reset=reset)
    return _alone(replace(plan, has_staging=False), writer, faults, (operator,))


def _halted_at_its_flag(chance: random.Random, plan: Plan) -> Plan:
    """A job stops when it asks whether a task has marked files itself; then one does, since the job does not answer."""
    task = _task(chance, row_s=0.0, rows=2)
    twin = replace(task.attempts[0], start_s=chance.choice((0.5, 1.0, 2.0, 5.0)), row_s=chance.choice((0.0, 0.5, 5.0)))
    slow = replace(task, months=task.months, attempts=(*task.attempts, twin))
    halted = Mishap(
        what="stopped",
        at_step=chance.choice((0, 0, 1, 2)),
        after=("get", "/DIRECT"),
        for_s=chance.choice((50.0, 70.0, 100.0)),
    )
    writer = replace(_writer(chance, (slow,)), mishap=halted)
    return _alone(plan, writer, FaultProfile(put_s=plan.faults.put_s), ())


def _halted_at_a_clean(chance: random.Random, plan: Plan) -> Plan:
    """A reader stops between its lease and its look for cleans; one that has listed leases before goes on meanwhile."""
    at_s, request_s = 30.0, plan.faults.put_s
    writer = replace(_writer(chance, (_task(chance, row_s=0.0, rows=1),)), mode="overwrite", dynamic=True)
    after_its_list = Mishap(what="stopped", at_step=chance.randint(14, 22), after=("put", "/open/"), for_s=50.0)
    before_its_look = Mishap(what="stopped", at_step=chance.randint(3, 7), after=("put", "/read/"), for_s=100.0)
    cleaner = VisitorPlan(host=draw_host(chance), what="clean at once", at_s=(at_s,), mishap=after_its_list)
    reader = VisitorPlan(
        host=draw_host(chance),
        what="read under a lease",
        at_s=(at_s + 20 * request_s + chance.choice((0.5, 5.0)),),
        back=1,
        hold_s=100.0,
        mishap=before_its_look,
    )
    plan = replace(plan, retain_hours=1.0, has_past=True)
    return _alone(plan, writer, FaultProfile(put_s=request_s), (cleaner, reader))


def _alone(plan: Plan, writer: WriterPlan, faults: FaultProfile, visitors: tuple[VisitorPlan, ...]) -> Plan:
    return replace(plan, writers=(writer,), visitors=visitors, viewers=(), faults=faults, replacement=None, damage=None)


def _task(chance: random.Random, *, row_s: float, rows: int) -> TaskPlan:
    return TaskPlan(months=(1,) * rows, attempts=(AttemptPlan(host=draw_host(chance), start_s=0.0, row_s=row_s),))


def _writer(chance: random.Random, tasks: tuple[TaskPlan, ...], *, beats_lost_after_s: float = 0.0) -> WriterPlan:
    return WriterPlan(
        host=draw_host(chance),
        start_s=0.0,
        clock_s=0.0,
        mode="append",
        dynamic=False,
        kind="batched",
        tasks=tasks,
        beats_lost_after_s=beats_lost_after_s,
    )
