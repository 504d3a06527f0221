"""A service outside of the driver acks nothing that the end of the instant does not read."""

from tallymark.engine.markers import loading
from tallymark.engine.serve.served_instants import ServedInstant
from tests.simulation.mutations import where
from tests.simulation.mutations.mutation import Group

SHARED = Group("Services outside of the drivers")

_load = loading.load_markers


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


@SHARED.function(loading.load_markers, where.has_shared_service)
async def _claims_stay(backend, folder, *, concurrency, ends_servers=False):
    """The end of an instant leaves the claims. So what is marked after its markers are read is acked."""
    return await _load(backend, folder, concurrency=concurrency)
