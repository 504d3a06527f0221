"""A dead writer is rolled back whole, and only a dead one; a heartbeat tells which writer is alive."""

from dataclasses import replace

import anyio

from tallymark.engine.instants import rollback
from tallymark.engine.instants.fencing import Fencer
from tallymark.engine.instants.finish import drop_bookkeeping, finish
from tallymark.engine.maintenance import recovery
from tallymark.engine.timeline.lease import Lease
from tallymark.engine.timeline.projection import PARTITION_METADATA, floor_files
from tallymark.engine.timeline.reservation import HEARTBEAT_FOLDER
from tallymark.engine.timeline.writer_identity import WriterIdentity
from tests.simulation.mutations import where
from tests.simulation.mutations.mutation import Mutation, both, method, nothing, replaced
from tests.simulation.scene import START
from tests.simulation.storage import EPOCH

_decide = rollback.decide
_until_known = recovery._until_its_writer_knows
_roll_back = rollback.roll_back


def _fencer(handle, properties, instant):
    return Fencer(
        backend=handle.backend,
        instant=instant,
        schema=properties.schema,
        settings=handle.commit_settings,
    )


async def _fence_marked(handle, properties, reservation, **named):
    fencer = _fencer(handle, properties, reservation.instant)
    await fencer.close()
    marked = await rollback.marked_paths(handle, reservation)
    await fencer.fence(marked, keep=())
    return marked


async def _touch_first(handle, properties, reservation, **named):
    history = await handle.log.refresh()
    if history.decision(reservation.instant) is None:
        await _fence_marked(handle, properties, reservation)
    return await _roll_back(handle, properties, reservation, **named)


async def _no_entry(handle, reservation):
    decision = (await handle.log.refresh()).decision(reservation.instant)
    return "rollback" if decision is None else decision[1].kind


async def _forget_first(handle, properties, reservation, **named):
    instant = reservation.instant
    if await _decide(handle, reservation) == "commit":
        await finish(handle, properties, reservation)
        return rollback.Ended(instant=instant, outcome="was committed", marked=0, fences=0)
    fencer = _fencer(handle, properties, instant)
    await fencer.close()
    marked = await rollback.marked_paths(handle, reservation)
    await drop_bookkeeping(handle, instant)
    fenced = await fencer.fence(marked, keep=())
    return rollback.Ended(instant=instant, outcome="rolled back", marked=len(marked), fences=len(fenced))


async def _with_metadata(handle, properties, reservation, **named):
    ended = await _roll_back(handle, properties, reservation, **named)
    if ended.outcome == "rolled back":
        found = [entry.path async for entry in handle.backend.list("") if entry.path.endswith(f"/{PARTITION_METADATA}")]
        await handle.backend.delete(found)
    return ended


ROLLBACKS = (
    Mutation(
        name="a rollback touches files before its entry",
        breaks="the writer commits in between, and its files are deleted",
        fault=lambda: both(replaced(recovery.end_instant, _touch_first), replaced(rollback.roll_back, _touch_first)),
    ),
    Mutation(
        name="a rollback puts no entry",
        breaks="the writer commits after it, and its files are deleted",
        fault=lambda: replaced(rollback.decide, _no_entry),
    ),
    Mutation(
        name="a rollback drops the markers before the files",
        where=(where.has_mishap_or_storm,),
        breaks="if it dies in between, no process can name the files",
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


async def _ages_by_own_clock(handle, own):
    now = (handle.clock.now() - START).total_seconds() + EPOCH
    beats = {entry.path: entry.modified async for entry in handle.backend.list(HEARTBEAT_FOLDER)}
    return {path.rpartition("/")[2]: now - modified for path, modified in beats.items() if path != own}


def _impatient(reservation, ages, *, seen_from):
    return reservation.writer.is_gone(seen_from=seen_from) or ages.get(reservation.instant, 1e9) > 1.0


def _only_beats(reservation, ages, *, seen_from):
    return ages.get(reservation.instant, 1e9) > reservation.expiry_s


async def _beat_blindly(lease):
    if not lease._is_over:
        begun = anyio.current_time()
        await lease._backend.put(lease.path, b"")
        lease._last_heartbeat = begun


async def _until_a_quarter_has_passed(handle, reservation):
    await _until_known(handle, replace(reservation, expiry_s=reservation.expiry_s / 2))


LEASES = (
    Mutation(
        name="a heartbeat's age is measured by the local clock",
        where=(where.has_wrong_clock,),
        breaks="a living writer is rolled back by one whose clock is ahead",
        fault=lambda: replaced(recovery.heartbeat_ages, _ages_by_own_clock),
    ),
    Mutation(
        name="a writer without a heartbeat for a second is dead",
        breaks="a living writer is rolled back",
        fault=lambda: replaced(recovery.is_dead, _impatient),
    ),
    Mutation(
        name="no writer puts a second heartbeat",
        breaks="a living writer is rolled back",
        fault=lambda: method(Lease, "keep", lambda _: anyio.sleep_forever()),
    ),
    Mutation(
        name="a process that has ended is not noticed by another on its machine",
        breaks="the first write after a crash leaves what the crashed one has left",
        fault=lambda: method(WriterIdentity, "is_gone", lambda *_, seen_from: False),
    ),
    Mutation(
        name="no writer ever counts as dead",
        breaks="what dead writers have left stays",
        fault=lambda: replaced(recovery.is_dead, lambda *_, seen_from: False),
    ),
    Mutation(
        name="a heartbeat does not read the log",
        where=(where.without_staging, where.has_halted_service),
        breaks="a writer that was rolled back does not learn it, and keeps acking",
        fault=lambda: method(Lease, "renew", _beat_blindly),
    ),
    Mutation(
        name="a rollback does not wait until the writer knows",
        where=(where.without_staging, where.has_service, where.has_operator),
        breaks="a marker is acked after the rollback has read the markers",
        fault=lambda: replaced(recovery._until_its_writer_knows, nothing),
    ),
    Mutation(
        name="a rollback waits for a quarter of the lease, not for half of it",
        where=(where.without_staging, where.loses_heartbeats),
        breaks="a marker is acked after the rollback has read the markers",
        fault=lambda: replaced(recovery._until_its_writer_knows, _until_a_quarter_has_passed),
    ),
)
