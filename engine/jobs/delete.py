"""Delete by predicate without an engine: the tasks of its job run in threads of this process.

Memory is bounded by the number of threads: each has the predicate's columns of one row group, or the bytes of the files
that one task rewrites and its write buffers.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import anyio

from tallymark.backends.concurrently import concurrently
from tallymark.backends.contract import Backend
from tallymark.engine.jobs.result import WriteResult
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.sizing.plan import PlannedFile
from tallymark.engine.sizing.tasks import tasks_of
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.tasks.task_writer import write_task
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.upsert.locate import Lookup, hit_counts, locate_task
from tallymark.engine.upsert.routing import deletes_in


async def delete_rows(job: WriteJob, backend: Backend, *, concurrency: int) -> WriteResult:
    """Run all steps of a job whose request has ``where``, this many tasks at once. Raises as these steps do."""
    ticket = job.ticket
    hits = await count_matches(ticket, await job.look_up(), backend, concurrency=concurrency)
    plan = await job.size(job.profile(hits))
    reports: list[TaskReport] = []

    async def rewrite(task: tuple[int, Sequence[PlannedFile]]) -> None:
        reports.append(await anyio.to_thread.run_sync(partial(_rewrite, ticket, *task, backend)))

    await concurrently(rewrite, enumerate(tasks_of(plan, task_bytes=ticket.max_file_bytes)), limit=concurrency)
    return await job.commit(reports)


async def count_matches(
    ticket: WriteTicket, lookups: Sequence[Lookup], backend: Backend, *, concurrency: int
) -> Mapping[str, int]:
    """Return the number of rows that match in each file, by its path, as ``hit_counts``."""
    found: dict[str, int] = {}

    async def count(lookup: Lookup) -> None:
        found.update(await anyio.to_thread.run_sync(lambda: hit_counts(locate_task(ticket, lookup, backend=backend))))

    await concurrently(count, lookups, limit=concurrency)
    return found


def _rewrite(ticket: WriteTicket, task: int, files: Sequence[PlannedFile], backend: Backend) -> TaskReport:
    """Write the files without their rows that match."""
    return write_task(ticket, deletes_in(ticket, files, backend=backend), task=task, planned=files, backend=backend)
