"""Many peers of one service: what they ask at one moment, and what one of them does to the others."""

import errno
import logging
import socket
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Any, Literal, cast

import anyio
import pytest
import trio
import trio.testing

from tallymark.engine.errors import Closed, NotAuthenticated, ServiceUnavailable
from tallymark.engine.rpc import server as rpc_server
from tallymark.engine.rpc.dispatcher import BlockOf, Handler, ServiceCounts, Settle
from tallymark.engine.rpc.frames import encode_frame
from tallymark.engine.rpc.handshake import ServiceAddress, job_key
from tallymark.engine.rpc.job_peer import JobPeer as NearPeer
from tallymark.engine.rpc.messages import Ack, CreateMarkers, LookUp, Refusal
from tallymark.engine.rpc.server import job_connections
from tallymark.engine.settings import ServiceSettings
from tests.engine.rpc.serving import (
    INSTANT,
    SECRET,
    Functions,
    Ledger,
    Peer,
    Table,
    ask,
    in_thread,
    is_well,
    one_by_one,
    peer_of,
    peers_of,
    running,
    serving,
)
from tests.engine.rpc.serving import until as eventually
from tests.support.loops import on_both_loops

OTHER = "20260102030405007"


def say_now(peer: Peer, *requests: CreateMarkers | LookUp) -> None:
    """Send, from the test's own thread: the service runs only once the test waits for something."""
    peer.say(*requests).send()


class Group:
    """A ``create_many`` that notes what came together, and lets all of it be durable at one moment."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, list[str]]] = []
        self.released = anyio.Event()

    async def create_many(self, instant: str, requests: Sequence[CreateMarkers], settle: Settle[CreateMarkers]) -> None:
        self.seen.append((instant, [path for request in requests for path in request.paths]))
        await self.released.wait()
        await settle([(request, ()) for request in requests])


def count_calls(monkeypatch: pytest.MonkeyPatch, verb: Literal["read", "write"]) -> Counter[NearPeer]:
    """How often each peer is read from, or written to, from now on."""
    counts: Counter[NearPeer] = Counter()
    method = getattr(NearPeer, verb)

    def counted(peer: NearPeer) -> object:
        counts[peer] += verb == "read" or bool(peer.unsent_bytes)
        return method(peer)

    monkeypatch.setattr(NearPeer, verb, counted)
    return counts


@asynccontextmanager
async def connections_of(
    listener: socket.socket, handler: Handler, *, shutdown_error: Closed | None = None, **settings: Any
) -> AsyncIterator[tuple[ServiceAddress, ServiceCounts]]:
    """What serves a listener of the test's own."""
    counts = ServiceCounts()
    served = job_connections(SECRET, ServiceSettings(**settings), handler, counts, shutdown_error)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(served.run, [listener])
        yield ServiceAddress("127.0.0.1", listener.getsockname()[1], job_key(SECRET, INSTANT)), counts
        tasks.cancel_scope.cancel()


@on_both_loops
async def test_what_peers_ask_at_one_moment_is_carried_out_together_for_each_job() -> None:
    group = Group()
    async with peers_of(running(group.create_many), INSTANT, OTHER, INSTANT) as (server, peers):
        for number, peer in enumerate(peers):
            say_now(peer, ask(1, f"{number}a"), ask(2, f"{number}b"))
        await eventually(lambda: len(group.seen) == 2)
        found = {instant: sorted(paths) for instant, paths in group.seen}
        assert found == {INSTANT: ["0a", "0b", "2a", "2b"], OTHER: ["1a", "1b"]}
        group.released.set()
        for peer in peers:
            assert await in_thread(peer.hear, 2) == [Ack(1), Ack(2)]
        assert server.statistics().inflight == 0


@on_both_loops
async def test_acks_of_one_moment_leave_with_one_write_a_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    group, writes = Group(), count_calls(monkeypatch, "write")
    async with peers_of(running(group.create_many), INSTANT, INSTANT) as (_, (one, other)):
        for number, peer in enumerate((one, other, other, one, one, other), start=1):
            say_now(peer, ask(number, "a"))
            await eventually(lambda number=number: len(group.seen) == number)  # type: ignore[misc]
        writes.clear()
        group.released.set()
        for peer in (one, other):
            assert len(await in_thread(peer.hear, 3)) == 3
    assert [*writes.values()] == [1, 1]


@on_both_loops
async def test_an_ack_waits_for_nobody_where_no_other_request_is_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    group, passes = Group(), list[None]()
    checkpoint = anyio.lowlevel.checkpoint

    async def counted() -> None:
        passes.append(None)
        await checkpoint()

    async with peer_of(running(group.create_many)) as (server, peer):
        say_now(peer, ask(1, "a"))
        await eventually(lambda: server.statistics().inflight == 1)
        monkeypatch.setattr(anyio.lowlevel, "checkpoint", counted)
        group.released.set()
        assert await in_thread(peer.hear, 1) == [Ack(1)]
        monkeypatch.undo()
    assert not passes


@on_both_loops
async def test_more_peers_than_are_looked_after_at_once_are_all_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpc_server, "_AT_ONCE", 2)
    ledger = Ledger()
    async with peers_of(serving(ledger.create), *[INSTANT] * 7) as (_, peers):
        for number, peer in enumerate(peers):
            say_now(peer, ask(1, f"{number}"))
        peers[3].reset()
        for peer in peers[:3] + peers[4:]:
            assert await in_thread(peer.hear, 1) == [Ack(1)]


@on_both_loops
async def test_nothing_is_read_from_a_peer_while_no_more_of_its_requests_may_be_in_flight(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger, reads = Ledger(), count_calls(monkeypatch, "read")
    async with peer_of(serving(ledger.create, inflight_count=2)) as (server, peer):
        say_now(peer, *(ask(number, f"hold{number}") for number in (1, 2, 3)))
        await eventually(lambda: server.statistics().inflight == 2)
        await is_well(server)
        await eventually(lambda: server.statistics().connections == 1)
        assert sorted(ledger.begun) == ["hold1", "hold2", "well"]
        reads.clear()
        say_now(peer, ask(4, "hold4"))
        await anyio.wait_all_tasks_blocked()
        assert not reads
        ledger.released.set()
        assert sorted(answer.id for answer in await in_thread(peer.hear, 4)) == [1, 2, 3, 4]
        assert reads


@on_both_loops
async def test_the_end_of_a_peer_leaves_those_alone_who_asked_with_it() -> None:
    group = Group()
    async with peer_of(running(group.create_many)) as (server, peer):
        lost = await in_thread(Peer, server.address(INSTANT))
        say_now(lost, ask(1, "of the lost one"), ask(2, "another"))
        say_now(peer, ask(1, "of the other"))
        await eventually(lambda: bool(group.seen))
        assert (server.statistics().inflight, len(group.seen)) == (3, 1)
        lost.reset()
        await eventually(lambda: server.statistics().connections == 1)
        assert server.statistics().inflight == 1
        group.released.set()
        assert await in_thread(peer.hear, 1) == [Ack(1)]
        assert server.statistics().inflight == 0


@on_both_loops
async def test_a_fault_of_ours_ends_the_connection_that_it_came_over(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    take = NearPeer.take

    def faulty(peer: NearPeer, count_max: int) -> object:
        if peer.job == OTHER:
            raise KeyError("a fault")
        return take(peer, count_max)

    monkeypatch.setattr(NearPeer, "take", faulty)
    async with peer_of(serving(Ledger().create)) as (server, peer):
        unlucky = await in_thread(Peer, server.address(OTHER), OTHER)
        with unlucky, caplog.at_level(logging.ERROR), pytest.raises(ConnectionError):
            await in_thread(unlucky.say(ask(1, "a")).hear, 1)
        assert await in_thread(peer.say(ask(1, "a")).hear, 1) == [Ack(1)]
    assert "connection.failed" in caplog.text


class Unwilling(socket.socket):
    """A listener that first cannot accept: no descriptor is left, say."""

    refusals = 1

    def accept(self) -> tuple[socket.socket, object]:
        if self.refusals:
            self.refusals -= 1
            raise OSError(errno.EMFILE, "too many open files")
        return super().accept()


@on_both_loops
async def test_who_cannot_be_accepted_now_is_accepted_a_moment_later(caplog: pytest.LogCaptureFixture) -> None:
    with Unwilling(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        async with connections_of(listener, Functions(one_by_one(Ledger().create))) as (address, _):
            with caplog.at_level(logging.WARNING), await in_thread(Peer, address) as peer:
                assert await in_thread(peer.say(ask(1, "a")).hear, 1) == [Ack(1)]
    assert "too many open files" in caplog.text
    assert not listener.refusals


@pytest.mark.parametrize("shutdown_error", [Closed("the job is over"), None], ids=["with an error", "without"])
@on_both_loops
async def test_everybody_is_told_of_the_end_of_the_job_behind_what_they_were_told_before(
    shutdown_error: Closed | None,
) -> None:
    group, error = Group(), ConnectionError if shutdown_error is None else Closed
    with ExitStack() as stack:
        async with running(group.create_many, shutdown_error=shutdown_error) as server:
            peers = [stack.enter_context(await in_thread(Peer, server.address(INSTANT))) for _ in range(3)]
            say_now(peers[0], ask(1, "a"))
            await eventually(lambda: server.statistics().inflight == 1)
        assert server.statistics().connections == 0
        for peer in peers:
            with pytest.raises(error, match=r"closed the connection|the job is over"):
                await in_thread(peer.hear, 1)


class Faulty:
    """What has never been a block, although it has a length."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, part: object) -> object:
        return self


@on_both_loops
@pytest.mark.parametrize("found", [None, Faulty()], ids=["nothing", "no bytes"])
async def test_what_is_no_block_is_refused_to_who_asked_for_it_and_to_nobody_else(
    found: object, caplog: pytest.LogCaptureFixture
) -> None:
    async def block_of(partition: str) -> bytes:
        return cast("bytes", found)

    async def look_up(position: int, log_hash: str) -> BlockOf:
        return block_of

    def at_hand(position: int, log_hash: str, partitions: Sequence[str]) -> Sequence[bytes]:
        return [cast("bytes", found)]

    with caplog.at_level(logging.CRITICAL + 1):
        async with peers_of(serving(Ledger().create, look_up=look_up, cached_blocks=at_hand), INSTANT, INSTANT) as (
            server,
            (peer, other),
        ):
            [answer] = await in_thread(peer.say(LookUp(1, 7, "hash", ("a",))).hear, 1)
            assert isinstance(answer, Refusal)
            assert isinstance(answer.error, ServiceUnavailable)
            for each in (peer, other):
                assert await in_thread(each.say(ask(2, "a")).hear, 1) == [Ack(2)]
            assert server.statistics().inflight == 0


class UnderWay:
    """Work that never ends by itself, and how much of it there is."""

    def __init__(self) -> None:
        self.count = 0

    async def wait(self) -> None:
        self.count += 1
        try:
            await anyio.sleep_forever()
        finally:
            self.count -= 1

    async def create_many(self, instant: str, requests: Sequence[CreateMarkers], settle: Settle[CreateMarkers]) -> None:
        for request in requests:
            if request.paths == ("quick",):
                await settle([(request, ())])
        await self.wait()

    async def look_up(self, position: int, log_hash: str) -> BlockOf:
        await self.wait()
        raise AssertionError


@on_both_loops
async def test_what_is_under_way_for_nobody_any_more_ends() -> None:
    under_way = UnderWay()
    async with running(under_way.create_many, look_up=under_way.look_up) as server:
        address = server.address(INSTANT)
        for request in (LookUp(1, 7, "hash", ("a",)), ask(1, "a")):
            with await in_thread(Peer, address) as peer:
                say_now(peer, request)
                await eventually(lambda: under_way.count == 1)
            await eventually(lambda: not under_way.count)
        with await in_thread(Peer, address) as stays, await in_thread(Peer, address) as answered:
            goes = await in_thread(Peer, address)
            for peer, path in ((stays, "a"), (goes, "b"), (answered, "quick")):
                say_now(peer, ask(1, path))
            assert await in_thread(answered.hear, 1) == [Ack(1)]
            goes.reset()
            await eventually(lambda: server.statistics().connections == 2)
            await anyio.wait_all_tasks_blocked()
            assert under_way.count == 1, "one still waits"
            stays.reset()
            await eventually(lambda: not under_way.count)
            assert server.statistics().connections == 1


@on_both_loops
async def test_who_is_cancelled_while_it_answers_leaves_the_others_their_answers() -> None:
    released = anyio.Event()

    async def create_many(instant: str, requests: Sequence[CreateMarkers], settle: Settle[CreateMarkers]) -> None:
        await released.wait()
        if instant == INSTANT:
            await settle([(request, ()) for request in requests])
            return
        with anyio.CancelScope() as scope:
            scope.cancel()
            await settle([(request, ()) for request in requests])

    async with peers_of(running(create_many), OTHER, INSTANT) as (server, (one, other)):
        for number in range(1, 13):  # trio runs the two in any order
            for peer in (one, other):
                say_now(peer, ask(number, "a"))
            await eventually(lambda: server.statistics().inflight == 2)
            await anyio.wait_all_tasks_blocked()
            released.set()
            released = anyio.Event()
            for peer in (one, other):
                assert await in_thread(peer.hear, 1) == [Ack(number)]


@on_both_loops
async def test_the_farewell_does_not_wait_for_what_cannot_be_cancelled() -> None:
    told = anyio.Event()

    async def look_up(position: int, log_hash: str) -> BlockOf:
        with anyio.CancelScope(shield=True):
            await told.wait()
        raise AssertionError

    async def hear_the_end(peer: Peer) -> None:
        try:
            with pytest.raises(Closed, match="the job is over"):
                await in_thread(peer.hear, 1)
        finally:
            told.set()

    work, over = Functions(one_by_one(Ledger().create), look_up), Closed("the job is over")
    with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as stack:
        async with (
            anyio.create_task_group() as peers,
            connections_of(listener, work, shutdown_error=over) as (address, counts),
        ):
            busy = stack.enter_context(await in_thread(Peer, address))
            stack.enter_context(socket.create_connection((address.host, address.port)))
            say_now(busy, LookUp(1, 7, "hash", ("a",)))
            await eventually(lambda: (counts.look_ups, counts.connections) == (1, 2))
            peers.start_soon(hear_the_end, busy)
    assert (counts.connections, counts.refused_connections) == (0, 0)


@on_both_loops
async def test_a_refusal_waits_for_what_the_peer_has_not_taken_yet() -> None:
    table = Table(large=bytes(16 << 20))
    async with peer_of(serving(Ledger().create, look_up=table.look_up)) as (server, peer):
        say_now(peer, LookUp(1, 7, "hash", ("large",)))
        await anyio.wait_all_tasks_blocked()
        peer.say_bytes(encode_frame(bytes(40))).send()
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(NotAuthenticated):
            await in_thread(peer.hear, 100)
        await eventually(lambda: server.statistics().connections == 0)


@on_both_loops
async def test_look_ups_wait_for_a_part_of_a_large_one_and_not_for_all_of_it() -> None:
    table = Table(large=bytes(48 << 20), small=b"of small")
    async with peer_of(serving(Ledger().create, look_up=table.look_up)) as (_, peer):
        small = [LookUp(number, 7, "hash", ("small",)) for number in range(2, 7)]
        say_now(peer, LookUp(1, 7, "hash", ("large",)), *small)
        answers = await in_thread(peer.hear, 48)
    assert {2, 3, 4, 5, 6} <= {answer.id for answer in answers[:10]}


def test_a_peer_is_given_up_that_takes_nothing_for_the_time_and_not_one_that_takes_some(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    clock = trio.testing.MockClock()

    async def main(listener: socket.socket) -> None:
        work = Functions(one_by_one(Ledger().create), Table(large=bytes(24 << 20)).look_up)
        async with connections_of(listener, work, send_timeout_s=30.0) as (address, counts):
            with await in_thread(Peer, address) as peer:
                say_now(peer, LookUp(1, 7, "hash", ("large",)))
                await trio.testing.wait_all_tasks_blocked()
                for _ in range(8):
                    clock.jump(20.0)
                    for _ in range(1000):  # some fifteen looks bring a piece
                        answers = peer.listen(0.0)
                        await trio.testing.wait_all_tasks_blocked()
                        if answers:
                            break
                    assert answers
                    assert counts.connections == 1
                clock.jump(61.0)
                await trio.testing.wait_all_tasks_blocked(0.01)
                assert (counts.connections, counts.inflight) == (0, 0)
                assert "did not read what it was sent within 30 s" in caplog.text, "or the kernel has given it up"

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
        trio.run(main, listener, clock=clock)
