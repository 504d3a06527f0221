"""Who is dead is told by one clock, the store's, or by the process itself; who is rolled back learns it."""

import anyio

from tallymark.engine.maintenance import recovery
from tallymark.engine.timeline.lease import HEARTBEAT_FOLDER, Lease
from tallymark.engine.timeline.writer_identity import WriterIdentity
from tests.simulation.mutations import where
from tests.simulation.mutations.mutation import Mutation, method, nothing, replaced
from tests.simulation.scene import START
from tests.simulation.storage import EPOCH


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


MUTATIONS = (
    Mutation(
        name="a heartbeat's age is measured by the reader's clock",
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
        breaks="the first write after a crash leaves the files of the crashed one",
        fault=lambda: method(WriterIdentity, "is_gone", lambda *_, seen_from: False),
    ),
    Mutation(
        name="no writer is ever dead",
        breaks="files of dead writers remain",
        fault=lambda: replaced(recovery.is_dead, lambda *_, seen_from: False),
    ),
    Mutation(
        name="a heartbeat does not read the log",
        where=(where.without_staging, where.has_halted_service),
        breaks="a writer that was rolled back does not learn it, and continues to ack",
        fault=lambda: method(Lease, "renew", _beat_blindly),
    ),
    Mutation(
        name="a rollback does not wait for half a lease",
        where=(where.without_staging, where.has_service, where.has_operator),
        breaks="a marker is acked after the rollback has read the markers",
        fault=lambda: replaced(recovery._until_its_writer_knows, nothing),
    ),
)
