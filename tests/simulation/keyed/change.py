"""A write by key as an engine plays it: keys, lookups, plan, routing and changes, each by tasks of its own."""

from typing import Any

import pyarrow as pa

from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.sizing.tasks import tasks_of
from tallymark.engine.tasks.changes import HASH
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.upsert.keys import key_task
from tallymark.engine.upsert.locate import hit_counts, locate_task
from tallymark.engine.upsert.routing import routed
from tests.simulation.blocking import run_blocking
from tests.simulation.executor import ASTRAY, Recorded, Stage, arriving, first_flight, flights, write
from tests.simulation.keyed.rows import deletes
from tests.simulation.plan import AttemptPlan, TaskPlan, WriterPlan
from tests.simulation.process import Process
from tests.simulation.scene import Scene

TASK_BYTES = 8000
"""Of planned files: a few of them."""

BATCH_ROWS = 2


async def change(scene: Scene, driver: Process, job: WriteJob, plan: WriterPlan) -> list[TaskReport]:
    """Return the reports of the tasks. Raises TasksFailed, and what the steps of the job raise."""
    ticket = job.ticket
    inputs = [
        [_hashed(flights(ticket.schema, first_flight(driver.name, task, 0, place), month)) for place, month in months]
        for task, months in enumerate(enumerate(each.months) for each in plan.tasks)
    ]

    async def keys(source: Recorded, task: int, attempt: AttemptPlan, _: int) -> Any:
        batches = arriving(inputs[task], attempt)
        return await run_blocking(lambda: key_task(ticket, batches, task=task, backend=source.port))

    reports = await Stage(scene, driver, ticket, plan.tasks, keys, name="keys").run(plan.patience_s)
    lookups = await job.look_up(reports)

    async def locate(source: Recorded, task: int, _: AttemptPlan, __: int) -> Any:
        return await run_blocking(lambda: list(locate_task(ticket, lookups[task], backend=source.port)))

    found = await Stage(scene, driver, ticket, _tasks(plan, len(lookups)), locate, name="look").run(plan.patience_s)
    hits = [batch for batches in found for batch in batches]
    planned = tasks_of(await job.size(job.profile(hit_counts(hits))), task_bytes=TASK_BYTES)
    rows = _input(inputs, plan, job)
    gone: Any = plan.mode == "delete"
    if plan.matched == "delete some":
        numbers: list[Any] = rows.column("flight").to_pylist()
        gone = pa.array([deletes(number) for number in numbers], pa.bool_())
    changes = routed(ticket, rows, hits, planned, keep=plan.matched == "keep", delete=gone)

    async def merge(source: Recorded, task: int, attempt: AttemptPlan, number: int) -> Any:
        batches = changes[task].to_batches(max_chunksize=BATCH_ROWS)
        return await write(source, task, attempt, number, batches, planned[task] if planned else ())

    return await Stage(scene, driver, ticket, _tasks(plan, len(changes)), merge).run(plan.patience_s)


def _tasks(plan: WriterPlan, count: int) -> list[TaskPlan]:
    """Return plans of attempts for so many tasks: those of the writer's own tasks, in turn."""
    some = plan.tasks or (TaskPlan(months=(), attempts=(AttemptPlan(host=plan.host, start_s=0.0, row_s=0.0),)),)
    return [some[number % len(some)] for number in range(count)]


def _hashed(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.append_column(HASH, batch.column("flight"))


def _input(inputs: list[list[pa.RecordBatch]], plan: WriterPlan, job: WriteJob) -> pa.Table:
    """Return all rows, as they are computed again."""
    batches = [batch for part in inputs for batch in part]
    schema = job.ticket.schema
    if plan.drifts and batches:
        first: dict[str, Any] = batches[0].slice(0, 1).to_pylist()[0]
        flight, month = first["flight"], first["month"]
        batches.append(_hashed(flights(schema, flight + ASTRAY * 10, month, count=1)))
    return pa.Table.from_batches(batches, _hashed(flights(schema, 0, 1)).schema)
