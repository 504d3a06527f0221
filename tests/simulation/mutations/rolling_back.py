"""A dead writer is rolled back whole, and only a dead one; a heartbeat tells which writer is alive."""

from dataclasses import replace

import anyio

from tallymark.engine.instants import rollback
from tallymark.engine.instants.fencing import Fencer
from tallymark.engine.instants.finish import drop_bookkeeping, finish
from tallymark.engine.instants.marked import marked_in_storage
from tallymark.engine.maintenance import recovery
from tallymark.engine.timeline.lease import Lease
from tallymark.engine.timeline.projection import PARTITION_METADATA, floor_files
from tallymark.engine.timeline.writer_identity import WriterIdentity
from tests.simulation.mutations import where
from tests.simulation.mutations.mutation import Group, both, replaced
from tests.simulation.scene import START
from tests.simulation.storage import EPOCH

ROLLBACKS = Group("Rolling back")

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
    marked = (await marked_in_storage(handle, reservation)).paths
    await fencer.fence(marked, keep=())
    return marked


async def _touch_first(handle, properties, reservation, **named):
    history = await handle.log.refresh()
    if history.decision(reservation.instant) is None:
        await _fence_marked(handle, properties, reservation)
    return await _roll_back(handle, properties, reservation, **named)


@ROLLBACKS.fault()
def _files_before_entry():
    """A rollback touches files before its entry. So the writer commits in between, and its files are deleted."""
    return both(replaced(recovery.end_instant, _touch_first), replaced(rollback.roll_back, _touch_first))


@ROLLBACKS.function(rollback.decide)
async def _no_entry(handle, reservation):
    """A rollback puts no entry. So the writer commits after it, and its files are deleted."""
    decision = (await handle.log.refresh()).decision(reservation.instant)
    return "rollback" if decision is None else decision[1].kind


@ROLLBACKS.function(rollback.roll_back, where.has_mishap_or_storm)
async def _forget_first(handle, properties, reservation, **named):
    """A rollback drops the markers before the files. So if it dies in between, no process can name the files."""
    instant = reservation.instant
    if await _decide(handle, reservation) == "commit":
        await finish(handle, properties, reservation)
        return rollback.Ended(instant=instant, outcome="was committed", marked=0, fences=0)
    fencer = _fencer(handle, properties, instant)
    await fencer.close()
    marked = (await marked_in_storage(handle, reservation)).paths
    await drop_bookkeeping(handle, instant)
    fenced = await fencer.fence(marked, keep=())
    return rollback.Ended(instant=instant, outcome="rolled back", marked=len(marked), fences=len(fenced))


@ROLLBACKS.function(rollback.roll_back)
async def _with_metadata(handle, properties, reservation, **named):
    """A rollback removes the metadata of the partitions, too. So Hudi on Java does not find the partition of another's
    files.
    """
    ended = await _roll_back(handle, properties, reservation, **named)
    if ended.outcome == "rolled back":
        found = [entry.path async for entry in handle.backend.list("") if entry.path.endswith(f"/{PARTITION_METADATA}")]
        await handle.backend.delete(found)
    return ended


@ROLLBACKS.function(floor_files, by=("all_or_nothing", "nothing_lost"))
def _no_floor(_):
    """No floor is put below the first commit. So files that are older than the first commit count as committed."""
    return ()


LEASES = Group("Dead or alive")


@LEASES.function(recovery.read_ages, where.has_wrong_clock)
async def _ages_by_own_clock(handle, own):
    """A heartbeat's age is measured by the local clock. So a living writer is rolled back by one whose clock is
    ahead.
    """
    now = (handle.clock.now() - START).total_seconds() + EPOCH
    beats = await recovery.read_heartbeats(handle)
    return now, {instant: now - modified for instant, modified in beats.items() if not own.endswith(instant)}


@LEASES.function(recovery.is_dead)
def _impatient(reservation, ages, *, seen_from):
    """A writer without a heartbeat for a second is dead. So a living writer is rolled back."""
    return reservation.writer.is_gone(seen_from=seen_from) or ages.get(reservation.instant, 1e9) > 1.0


@LEASES.member(Lease, "keep")
def _one_heartbeat(_):
    """No writer puts a second heartbeat. So a living writer is rolled back."""
    return anyio.sleep_forever()


@LEASES.member(WriterIdentity, "is_gone")
def _never_gone(*_, seen_from):
    """A process that has ended is not noticed by another on its machine. So the first write after a crash leaves what
    the crashed one has left.
    """
    return False


@LEASES.function(recovery.is_dead)
def _never_dead(*_, seen_from):
    """No writer ever counts as dead. So what dead writers have left stays."""
    return False


@LEASES.member(Lease, "renew", where.without_staging, where.has_halted_service)
async def _beat_blindly(lease):
    """A heartbeat does not read the log. So a writer that was rolled back does not learn it, and keeps acking."""
    if not lease._is_over:
        begun = anyio.current_time()
        await lease._backend.put(lease.path, b"")
        lease._last_heartbeat = begun


@LEASES.function(recovery._until_its_writer_knows, where.without_staging, where.has_service, where.has_operator)
async def _not_waited(*_):
    """A rollback does not wait until the writer knows. So a marker is acked after the rollback has read the markers."""


@LEASES.function(recovery._until_its_writer_knows, where.without_staging, where.loses_heartbeats)
async def _until_a_quarter_has_passed(handle, reservation):
    """A rollback waits for a quarter of the lease, not for half of it. So a marker is acked after the rollback has read
    the markers.
    """
    await _until_known(handle, replace(reservation, expiry_s=reservation.expiry_s / 2))
