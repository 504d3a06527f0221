"""A service outside of the driver acks nothing that the end of the instant does not read."""

from tallymark.engine.markers import loading
from tallymark.engine.markers.numbers import SegmentNumbers
from tallymark.engine.serve.served_instants import ServedInstant
from tests.simulation.mutations import where
from tests.simulation.mutations.mutation import Group

SHARED = Group("Services outside of the drivers")

_load = loading.load_markers
_is_won = SegmentNumbers._is_won


@SHARED.member(ServedInstant, "_check_held", where.has_shared_service)
async def _only_when_claimed(served):
    """An ack does not look at the claim. So what is marked after the job has read its markers is neither committed nor
    excluded.
    """
    await served._claimed.get()


@SHARED.member(ServedInstant, "_check_held", where.has_shared_service)
async def _only_held(served):
    """The instant is not looked at when the claim is durable. So a claim that lands after its end acks."""
    if not await served.directory.is_held():
        await served._lost(served)


@SHARED.member(SegmentNumbers, "_is_won", where.has_repeated_claims)
async def _any_claim(numbers, path):
    """A server relies on a claim whose put was sent twice. So a copy of it that lands at the end lets it ack."""
    won, _ = await _is_won(numbers, path)
    return won, True


@SHARED.function(loading.load_markers, where.has_shared_service)
async def _claims_stay(backend, folder, *, concurrency, ends_servers=False):
    """The end of an instant leaves the claims. So what is marked after its markers are read is acked."""
    return await _load(backend, folder, concurrency=concurrency)
