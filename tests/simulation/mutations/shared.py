"""A service outside of the driver acks nothing that the end of the instant does not read."""

from tallymark.engine.errors import RolledBack
from tallymark.engine.markers import loading
from tallymark.engine.rpc.commit_broker import CommitBroker
from tallymark.engine.serve import broker as broker_module
from tallymark.engine.serve.broker import Broker
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


_commit, _ask = Broker.commit, CommitBroker.commit


@SHARED.member(Broker, "commit", where.has_shared_service)
async def _answers_before(broker, requests):
    """A service answers before the entry is put. So a commit that was reported may be lost with the service."""
    entries = [broker._entry_of(request) for request in requests]
    history = await broker._log.refresh()
    if any(history.decided(entry.instant) for entry in entries) or any(entry.removed for entry in entries):
        return await _commit(broker, requests)
    return [history.head + 1 for _ in requests]


@SHARED.member(CommitBroker, "commit", where.has_shared_service)
async def _silence_is_refusal(broker, commit):
    """A driver that gets no answer treats its commit as refused. So one that was committed is reported as rolled
    back.
    """
    position = await _ask(broker, commit)
    if position is None:
        raise RolledBack("no answer")
    return position


@SHARED.function(broker_module._check, where.has_shared_service)
def _no_checks(entry, request, history):
    """A service compares a commit with no other. So two overwrites of one partition are both committed."""
