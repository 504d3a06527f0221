"""A data file is begun after the ack of its marker, and no marker is acked once its instant is being ended."""

from tallymark.engine.instants.fencing import Fencer
from tallymark.engine.instants.finish import close_staging
from tallymark.engine.markers.direct_flag import DirectFlag
from tallymark.engine.markers.directory import MarkerDirectory
from tallymark.engine.tasks.marker_prefetch import MarkersAhead
from tallymark.engine.timeline import seal
from tallymark.engine.timeline.lease import Lease
from tests.simulation.mutations import where
from tests.simulation.mutations.mutation import Mutation, method, nothing, replaced


async def _close_staging_only(fencer):
    await close_staging(fencer.backend, fencer.instant)


MUTATIONS = (
    Mutation(
        name="a data file is begun before its marker is acked",
        breaks="a file exists that no marker names",
        fault=lambda: method(MarkersAhead, "_await", lambda *_: None),
    ),
    Mutation(
        name="an ack does not check its lease",
        where=(where.without_staging, where.has_halted_service),
        breaks="a writer that was rolled back during a pause continues to ack",
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
        breaks="a task with direct markers does not learn of the job's end",
        fault=lambda: method(Fencer, "close", _close_staging_only),
    ),
    Mutation(
        name="a task that falls back puts its markers without the flag",
        where=(where.has_service,),
        breaks="its job treats its files as unmarked: files of lost attempts remain",
        fault=lambda: method(DirectFlag, "put", nothing),
    ),
    Mutation(
        name="a task with direct markers checks neither for the seal nor the log",
        where=(where.without_staging, where.has_late_tasks),
        breaks="its marker arrives after the job's reading of them, and its file after that",
        fault=lambda: replaced(seal.check_unsealed, nothing),
    ),
)
