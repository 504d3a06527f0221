"""A rollback wins its entry before it touches anything, and removes all that was marked before it forgets the marks."""

from tallymark.engine.instants import rollback
from tallymark.engine.instants.fencing import Fencer
from tallymark.engine.instants.finish import drop_bookkeeping, finish
from tallymark.engine.maintenance import recovery
from tallymark.engine.timeline.projection import PARTITION_METADATA, floor_files
from tests.simulation.mutations import where
from tests.simulation.mutations.mutation import Mutation, both, replaced

_decide = rollback.decide
_roll_back = rollback.roll_back


def _fencer(handle, properties, instant):
    return Fencer(
        backend=handle.backend,
        instant=instant,
        schema=properties.schema,
        settings=handle.commit_settings,
    )


async def _fence_marked(handle, properties, reservation):
    fencer = _fencer(handle, properties, reservation.instant)
    await fencer.close()
    marked = await rollback.marked_paths(handle, reservation)
    await fencer.fence(marked, keep=())
    return marked


async def _touch_first(handle, properties, reservation):
    history = await handle.log.refresh()
    if history.decision(reservation.instant) is None:
        await _fence_marked(handle, properties, reservation)
    return await _roll_back(handle, properties, reservation)


async def _no_entry(handle, reservation):
    decision = (await handle.log.refresh()).decision(reservation.instant)
    return "rollback" if decision is None else decision[1].kind


async def _forget_first(handle, properties, reservation):
    instant = reservation.instant
    if await _decide(handle, reservation) == "commit":
        await finish(handle, properties, reservation)
        return rollback.Ended(instant=instant, outcome="was committed", marked=0, fences=0)
    fencer = _fencer(handle, properties, instant)
    await fencer.close()
    marked = await rollback.marked_paths(handle, reservation)
    await drop_bookkeeping(handle, instant, registration=reservation.registration)
    fenced = await fencer.fence(marked, keep=())
    return rollback.Ended(instant=instant, outcome="rolled back", marked=len(marked), fences=len(fenced))


async def _with_metadata(handle, properties, reservation):
    ended = await _roll_back(handle, properties, reservation)
    if ended.outcome == "rolled back":
        found = [entry.path async for entry in handle.backend.list("") if entry.path.endswith(f"/{PARTITION_METADATA}")]
        await handle.backend.delete(found)
    return ended


MUTATIONS = (
    Mutation(
        name="a rollback deletes files before its entry",
        breaks="the writer commits in between, and its files are lost",
        fault=lambda: both(replaced(recovery.end_instant, _touch_first), replaced(rollback.roll_back, _touch_first)),
    ),
    Mutation(
        name="a rollback puts no entry",
        breaks="the writer commits after it, and its files are lost",
        fault=lambda: replaced(rollback.decide, _no_entry),
    ),
    Mutation(
        name="a rollback drops the markers before the files",
        where=(where.has_mishap_or_storm,),
        breaks="if it dies in between, the files have no marker",
        fault=lambda: replaced(rollback.roll_back, _forget_first),
    ),
    Mutation(
        name="a rollback removes the metadata of the partitions, too",
        breaks="Hudi on Java does not find the partition of another's files",
        fault=lambda: replaced(rollback.roll_back, _with_metadata),
    ),
    Mutation(
        name="no floor is put below the first commit",
        by=("all_or_nothing", "nothing_lost"),
        breaks="files that are older than the first commit count as committed",
        fault=lambda: replaced(floor_files, lambda _: ()),
    ),
)
