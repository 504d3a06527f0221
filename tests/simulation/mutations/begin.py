"""An instant is reserved before anything else is promised, and the log is read after that."""

import copy

from tallymark.engine.instants import registration, reserve
from tallymark.engine.markers.segment import BATCHED_TYPE, DIRECT_TYPE, TYPE_FILE, marker_folder
from tallymark.engine.timeline.instant import instant_time
from tallymark.engine.timeline.lease import HEARTBEAT_FOLDER, Lease
from tallymark.engine.timeline.log import new_nonce
from tallymark.engine.timeline.registration import REGISTRATION_FOLDER, registration_path
from tallymark.engine.timeline.reservation import Reservation
from tallymark.engine.timeline.writer_identity import WriterIdentity
from tests.simulation.mutations import where
from tests.simulation.mutations.mutation import Mutation, Without, both, replaced


async def _put_over(handle, reservation):
    await handle.backend.put(reservation.path, reservation.encode())
    return True


_is_taken = reserve.is_taken
_reserve = reserve.reserve


async def _read_first(handle, *, operation, marker_kind):
    """As ``reserve``, but for the order of its two looks."""
    newest = (await handle.log.refresh()).reached_instant
    while True:
        instant = instant_time(handle.clock.now(), after=newest)
        draft = Reservation(
            instant=instant,
            nonce=new_nonce(),
            writer=WriterIdentity.here(),
            marker_kind=marker_kind,
            operation=operation,
            expiry_s=handle.lease_settings.expiry_s,
        )
        reservation = await registration.take(handle, draft)
        lease = Lease(handle.backend, instant, handle.log, handle.lease_settings)
        await lease.begin()
        kind = DIRECT_TYPE if marker_kind == "direct" else BATCHED_TYPE
        await handle.backend.put(f"{marker_folder(instant)}/{TYPE_FILE}", kind)
        if await _is_taken(handle, reservation):
            return reservation, lease
        newest = max(newest, instant)


async def _without_beat(handle, **options):
    muted = copy.copy(handle)
    muted.backend = Without(handle.backend, "put", HEARTBEAT_FOLDER)
    reservation, lease = await _reserve(muted, **options)
    lease._backend = handle.backend
    return reservation, lease


async def _number_last(handle, **options):
    muted = copy.copy(handle)
    muted.backend = Without(handle.backend, "put_new", REGISTRATION_FOLDER)
    reservation, lease = await _reserve(muted, **options)
    lease._backend = handle.backend
    await handle.backend.put(registration_path(reservation.registration), reservation.encode())
    return reservation, lease


MUTATIONS = (
    Mutation(
        name="an instant is reserved by a plain put, whether an open writer has it or not",
        breaks="two writers of one millisecond share an instant, its markers and its end",
        fault=lambda: both(
            replaced(reserve.is_taken, _put_over), replaced(registration._later, lambda instant, _: instant)
        ),
    ),
    Mutation(
        name="the log is read before the reservation",
        where=(where.has_twins,),
        breaks="an instant is taken that has been committed in between",
        fault=lambda: replaced(reserve.reserve, _read_first),
    ),
    Mutation(
        name="no heartbeat is put before the reservation",
        breaks="a writer that has just started is treated as dead",
        fault=lambda: replaced(reserve.reserve, _without_beat),
    ),
    Mutation(
        name="a number is put after the reservation",
        where=(where.has_mishap_or_storm,),
        breaks="a writer that dies in between is not found",
        fault=lambda: replaced(reserve.reserve, _number_last),
    ),
    Mutation(
        name="a number is kept that others have passed",
        where=(where.looks_and_stands_still,),
        breaks="its writer is not found when it dies",
        fault=lambda: replaced(registration.is_passed, lambda *_: False),
    ),
)
