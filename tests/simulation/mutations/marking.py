"""A data file is begun after the ack of its marker, and no marker is acked once its instant is being ended."""

from contextlib import suppress

from tallymark.backends.errors import NotFound
from tallymark.engine.errors import Sealed
from tallymark.engine.files.markers_ahead import MarkersAhead
from tallymark.engine.markers.directory import MarkerDirectory
from tallymark.engine.timeline import seal
from tallymark.engine.timeline.lease import Lease
from tallymark.engine.timeline.log import read_entry
from tallymark.engine.writes.exclude import Excluder
from tests.simulation.mutations import where
from tests.simulation.mutations.mutation import Mutation, method, nothing, replaced


async def _log_then_seal(backend, instant, *, base):
    number = base + 1
    with suppress(NotFound):
        while (await read_entry(backend, number)).instant != instant:
            number += 1
        raise Sealed(f"{instant} is decided")
    with suppress(NotFound):
        await backend.get(seal.seal_path(instant))
        raise Sealed(f"{instant} is sealed")


async def _close_staging_only(excluder):
    await excluder.backend.close_staging(excluder.staging)


MUTATIONS = (
    Mutation(
        name="a data file is begun before its marker is acked",
        breaks="a file lies there that no marker tells of",
        fault=lambda: method(MarkersAhead, "_await", lambda *_: None),
    ),
    Mutation(
        name="an ack does not look at its lease",
        where=(where.without_staging, where.has_halted_service),
        breaks="a writer that was rolled back while it stood still goes on acking",
        fault=lambda: method(Lease, "check_open", nothing),
    ),
    Mutation(
        name="the service is not sealed",
        where=(where.without_staging, where.has_service, where.has_late_tasks),
        breaks="a marker is acked after the job has read its markers",
        fault=lambda: method(MarkerDirectory, "seal", lambda _: None),
    ),
    Mutation(
        name="the seal is not put",
        where=(where.without_staging, where.has_direct, where.has_late_tasks),
        breaks="a task that puts its own markers does not hear of the job's end",
        fault=lambda: method(Excluder, "close", _close_staging_only),
    ),
    Mutation(
        name="a task that puts its own markers does not look for the seal, nor in the log",
        where=(where.without_staging, where.has_late_tasks),
        breaks="its marker comes after the job's reading of them, and its file after that",
        fault=lambda: replaced(seal.check_unsealed, nothing),
    ),
    Mutation(
        name="a task that puts its own markers looks in the log first, for the seal second",
        where=(where.without_staging, where.has_direct, where.has_late_tasks, where.has_halted_task),
        breaks="between both looks the entry is put, and the seal goes",
        fault=lambda: replaced(seal.check_unsealed, _log_then_seal),
    ),
)
