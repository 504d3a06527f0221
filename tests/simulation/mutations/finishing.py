"""After the entry: the projection in the order of the log, then the deletions, the reservation last."""

from tallymark.backends.concurrently import concurrently
from tallymark.engine.instants import finish, project
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.maintenance import expire
from tallymark.engine.timeline.projection import projected_files
from tests.simulation.mutations import where
from tests.simulation.mutations.mutation import Mutation, method, nothing, replaced

_project = project.project
_project_job = WriteJob._project
_drop = finish.drop_bookkeeping
_let_go = expire.expire


async def _project_own(handle, properties, position):
    history = handle.log.history
    if position == 0:
        await _project(handle, properties, position)
    elif (entry := history.entry(position)).kind == "commit":
        files = projected_files(entry, properties, new_partitions=history.new_partitions(position))
        await concurrently(lambda file: project.put_projected(handle, file), files, limit=1)


async def _delete_then_project(job, position):
    entry = job._handle.log.history.entry(position)
    await job._handle.backend.delete([file.path for file in entry.removed])
    return await _project_job(job, position)


async def _drop_then_delete(handle, properties, reservation, *, objects=None):
    instant = reservation.instant
    position, entry = handle.log.history.decision(instant)
    await project.project(handle, properties, position)
    await _drop(handle, instant, registration=reservation.registration, objects=objects)
    await handle.backend.delete([file.path for file in entry.removed])


async def _keep_replaced(handle, properties, reservation, *, objects=None):
    instant = reservation.instant
    position, _ = handle.log.history.decision(instant)
    await project.project(handle, properties, position)
    await _drop(handle, instant, registration=reservation.registration, objects=objects)


async def _delete_then_let_go(handle, properties, due, **how):
    await handle.backend.delete([file.path for file in due.files])
    return await _let_go(handle, properties, due, **how)


MUTATIONS = (
    Mutation(
        name="a writer projects its own entry only",
        by=("all_or_nothing", "nothing_lost"),
        breaks="readers of the Hudi format see a commit without the one before it",
        fault=lambda: replaced(project.project, _project_own),
    ),
    Mutation(
        name="replaced files are deleted before the entry is projected",
        where=(where.has_overwrite,),
        breaks="readers of the Hudi format find neither the old files nor the new ones",
        fault=lambda: method(WriteJob, "_project", _delete_then_project),
    ),
    Mutation(
        name="a commit returns before its projection",
        breaks="a reported commit is not visible to readers of the Hudi format",
        fault=lambda: method(WriteJob, "_project", nothing),
    ),
    Mutation(
        name="the reservation is deleted before the replaced files",
        where=(where.has_overwrite, where.has_mishap_or_storm),
        breaks="a writer that dies in between leaves files that no process returns for",
        fault=lambda: replaced(finish.finish, _drop_then_delete),
    ),
    Mutation(
        name="replaced files remain",
        where=(where.has_overwrite,),
        breaks="readers of the directory see rows that were overwritten",
        fault=lambda: replaced(finish.finish, _keep_replaced),
    ),
    Mutation(
        name="retained files are deleted before the entry that expires them",
        where=(where.keeps_replaced, where.has_overwrite),
        breaks="files are missing that are retained by the log",
        fault=lambda: replaced(expire.expire, _delete_then_let_go),
    ),
)
