"""Delete by predicate without an engine: the tasks of its job run in threads of this process.

Memory is bounded by the number of threads: each has the predicate's columns of one row group, or the bytes of the files
that one task rewrites and its write buffers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import anyio

from tallymark.backends.concurrently import concurrently
from tallymark.backends.contract import Backend
from tallymark.backends.errors import BackendError
from tallymark.engine.errors import TryAgain
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.jobs.result import WriteResult
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.maintenance.checkpoint import archive_up_to
from tallymark.engine.maintenance.clean import clean
from tallymark.engine.sizing.plan import PlannedFile
from tallymark.engine.sizing.tasks import tasks_of
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.tasks.task_writer import write_task
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.properties import TableProperties
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


async def purge_older(handle: TableHandle, properties: TableProperties, result: WriteResult) -> WriteResult:
    """End the retention of every older version of the table, and archive the entries that have the ranges of its keys.
    Return the result, which states what remains of them.

    The delete is committed: what fails here is also stated in the result.
    """
    left = []
    try:
        if properties.readers == "table":
            cleaned = await clean(handle, properties, 0, None)
            if cleaned.held_files:
                readers = (f"process {reader.process.pid} on {reader.process.host}" for reader in cleaned.readers)
                left.append(f"{cleaned.held_files:,} replaced files remain for {', '.join(readers)}")
        if properties.key is not None and not await archive_up_to(handle, properties, result.position - 1):
            left.append("the log has ranges of their keys, and an open write or a retained file needs its entries")
    except (BackendError, TryAgain) as error:
        left.append(str(error))
    if not left:
        return result
    reason = f"older versions may still have the rows ({'; '.join(left)}): purge again later"
    return replace(result, pending="; ".join(filter(None, [result.pending, reason])))


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
