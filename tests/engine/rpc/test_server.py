import logging
import socket
from collections.abc import Callable, Sequence

import pytest

from tallymark.backends.errors import Unavailable
from tallymark.engine.errors import (
    Closed,
    FlushFailed,
    InvalidRequest,
    NotAuthenticated,
    Overloaded,
    RolledBack,
    Sealed,
    ServiceUnavailable,
)
from tallymark.engine.rpc import messages
from tallymark.engine.rpc.dispatcher import Settle
from tallymark.engine.rpc.frames import FrameReader, encode_frame
from tallymark.engine.rpc.handshake import ServiceAddress, job_key
from tallymark.engine.rpc.messages import Ack, Blocks, CreateMarkers, LookUp, Piece, Refusal
from tallymark.engine.rpc.server import JobServer
from tallymark.engine.settings import ServiceSettings
from tests.engine.rpc.serving import (
    INSTANT,
    SECRET,
    Functions,
    Ledger,
    Peer,
    Table,
    ask,
    exchange,
    in_thread,
    is_well,
    one_by_one,
    peer_of,
    running,
    serving,
    until,
)
from tests.support.loops import on_both_loops


@on_both_loops
async def test_an_error_arrives_as_what_it_is_and_the_connection_goes_on() -> None:
    refusals = [kind("because") for kind in (FlushFailed, Closed, Sealed, RolledBack, InvalidRequest)]
    errors = [*refusals, Overloaded("because", retry_after_s=0.25), Unavailable("because")]

    async def create(instant: str, paths: Sequence[str], io: str) -> None:
        raise errors[int(paths[0])]

    async with peer_of(serving(create)) as (server, peer):
        received = [(await in_thread(peer.say(ask(7, str(n))).hear, 1))[0] for n in range(len(errors))]
        refused = [answer.error for answer in received if isinstance(answer, Refusal)]
        assert server.statistics().refusals == len(errors)
    assert [type(error) for error in refused] == [*map(type, errors[:-1]), ServiceUnavailable]
    assert all("because" in str(error) for error in refused)
    assert [error.retry_after_s for error in refused if isinstance(error, Overloaded)] == [0.25]


@on_both_loops
async def test_answers_come_in_the_order_of_durability_not_of_asking() -> None:
    ledger = Ledger()
    async with peer_of(serving(ledger.create)) as (server, peer):
        quick = CreateMarkers(2, ("quick", "another"), "MERGE")
        assert await in_thread(peer.say(ask(1, "hold"), quick).hear, 1) == [Ack(2)]
        assert ledger.created == [(INSTANT, "quick", "MERGE"), (INSTANT, "another", "MERGE")]
        assert server.statistics().inflight == 1
        ledger.released.set()
        assert await in_thread(peer.hear, 1) == [Ack(1)]


@on_both_loops
async def test_requests_that_arrive_together_are_carried_out_together_and_no_more_than_may_be_in_flight() -> None:
    groups: list[list[int]] = []

    async def create_many(instant: str, requests: Sequence[CreateMarkers], settle: Settle[CreateMarkers]) -> None:
        groups.append([request.id for request in requests])
        odd = [request for request in requests if request.id % 2]
        await settle([(request, Sealed("odd")) for request in odd])
        await settle([(request, ()) for request in requests if request not in odd])

    async with peer_of(running(create_many, inflight_count=4)) as (server, peer):
        answers = await in_thread(peer.say(*(ask(number, "a") for number in range(1, 7))).hear, 6)
        statistics = server.statistics()
    assert groups == [[1, 2, 3, 4], [5, 6]]
    assert {answer.id for answer in answers if isinstance(answer, Ack)} == {2, 4, 6}
    assert {answer.id for answer in answers if isinstance(answer, Refusal)} == {1, 3, 5}
    assert (statistics.requests, statistics.names, statistics.refusals, statistics.inflight) == (6, 6, 3, 0)


@on_both_loops
async def test_a_fault_amid_requests_that_came_together_refuses_those_that_had_no_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def create_many(instant: str, requests: Sequence[CreateMarkers], settle: Settle[CreateMarkers]) -> None:
        await settle([(requests[0], ())])
        if requests[0].paths[0] == "bad":
            raise KeyError("a fault")

    async with running(create_many) as server:
        with caplog.at_level(logging.CRITICAL + 1), await in_thread(Peer, server.address(INSTANT)) as peer:
            for first in ("bad", "forgetful"):
                ack, refusal = await in_thread(peer.say(ask(1, first), ask(2, "b")).hear, 2)
                assert ack == Ack(1)
                assert isinstance(refusal, Refusal)
                assert (refusal.id, type(refusal.error)) == (2, ServiceUnavailable)
                assert first != "bad" or "a fault" in str(refusal.error)
        assert server.statistics().inflight == 0


@on_both_loops
async def test_what_is_at_hand_is_answered_without_a_look_up_and_the_rest_with_one() -> None:
    table = Table(a=b"of a", b=b"of b", large=bytes(2_000_000))

    def at_hand(position: int, log_hash: str, partitions: Sequence[str]) -> list[bytes] | None:
        is_there = position == 7 and {"a", "large"}.issuperset(partitions)
        return [table.blocks[partition] for partition in partitions] if is_there else None

    async with peer_of(serving(Ledger().create, look_up=table.look_up, cached_blocks=at_hand)) as (server, peer):
        questions = LookUp(1, 7, "hash", ("a",)), LookUp(2, 7, "hash", ("b", "none", "a")), LookUp(3, 8, "hash", ("a",))
        answers = {answer.id: answer for answer in await in_thread(peer.say(*questions).hear, 3)}
        assert answers[1] == Blocks(1, (Piece(4, b"of a"),))
        assert answers[2] == Blocks(2, (Piece(4, b"of b"), Piece(0, b""), Piece(4, b"of a")))
        assert isinstance(answers[3], Refusal)
        assert isinstance(answers[3].error, InvalidRequest)
        assert "position 8 is one of another log" in str(answers[3].error)
        assert table.asked == ["b", "none", "a"]
        parts = await in_thread(peer.say(LookUp(4, 7, "hash", ("large",))).hear, 2)
        assert [piece.size for part in parts if isinstance(part, Blocks) for piece in part.pieces] == [2_000_000] * 2
        assert table.asked == ["b", "none", "a", "large"]
        statistics = server.statistics()
    assert (statistics.look_ups, statistics.refusals, statistics.inflight) == (4, 1, 0)


@on_both_loops
async def test_a_key_of_another_driver_opens_nothing() -> None:
    ledger = Ledger()
    async with serving(ledger.create) as server:
        real = server.address(INSTANT)
        false = ServiceAddress(real.host, real.port, job_key(b"x" * 32, INSTANT))
        with pytest.raises(NotAuthenticated, match="does not open"):
            await in_thread(Peer, false)
        await until(lambda: server.statistics().refused_connections == 1)
        await is_well(server)
    assert [path for _, path, _ in ledger.created] == ["well"]


@pytest.mark.parametrize(
    ("garbage", "words"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", ""),
        (bytes(100), ""),
        (b"\0\0\0\5\xdd\xff\xff\xff\xff", ""),
        ((301).to_bytes(4, "big"), "ServiceSettings.handshake_bytes"),
    ],
    ids=["http", "zeros", "an array", "the length of a large frame"],
)
@on_both_loops
async def test_garbage_closes_its_own_connection_only(garbage: bytes, words: str) -> None:
    async with serving(Ledger().create, handshake_bytes=300) as server:
        heard = await in_thread(exchange, server.address(INSTANT), garbage)
        [answer] = map(messages.decode_answer, FrameReader(messages.ANSWER_BYTES, setting="").feed(heard))
        assert isinstance(answer, Refusal)
        assert answer.id == messages.WHOLE_CONNECTION
        assert isinstance(answer.error, InvalidRequest)
        assert words in str(answer.error)
        await until(lambda: server.statistics().connections == 0)
        assert server.statistics().refused_connections == 1
        await is_well(server)


@on_both_loops
async def test_a_peer_that_says_nothing_is_sent_away_after_the_handshake_s_time() -> None:
    async with serving(Ledger().create, handshake_timeout_s=0.05) as server:
        assert await in_thread(exchange, server.address(INSTANT), b"\0\0") == b""
        await until(lambda: server.statistics().connections == 0)
        assert server.statistics().refused_connections == 1


@on_both_loops
async def test_a_peer_that_leaves_before_it_is_known_is_no_trouble() -> None:
    async with serving(Ledger().create) as server:
        address = server.address(INSTANT)
        (await in_thread(socket.create_connection, (address.host, address.port))).close()
        await until(lambda: server.statistics().refused_connections == 1)
        await is_well(server)


FORGED = messages.encode_request(ask(1, "forged"))


@pytest.mark.parametrize(
    ("say", "error", "words"),
    [
        (lambda peer: peer.say_bytes((1025).to_bytes(4, "big")), InvalidRequest, r"1025 bytes.*1024.*\.frame_bytes"),
        (lambda peer: peer.say_bytes(encode_frame(FORGED + bytes(16))), NotAuthenticated, "did not send"),
        (lambda peer: peer.say(ask(messages.WHOLE_CONNECTION, "a")), InvalidRequest, "request"),
    ],
    ids=["an oversize frame", "a forged frame", "a request that cannot be read"],
)
@on_both_loops
async def test_a_bad_frame_of_a_task_ends_its_own_connection_only(
    say: Callable[[Peer], Peer], error: type[Exception], words: str
) -> None:
    ledger = Ledger()
    async with serving(ledger.create, frame_bytes=1024) as server:
        with await in_thread(Peer, server.address(INSTANT)) as peer, pytest.raises(error, match=words):
            await in_thread(say(peer).hear, 1)
        await is_well(server)
    assert ledger.begun == ["well"]


@on_both_loops
async def test_a_connection_beyond_the_limit_is_closed_at_once_and_room_is_given_back() -> None:
    async with serving(Ledger().create, connection_count=1) as server:
        with await in_thread(Peer, server.address(INSTANT)) as peer:
            with pytest.raises(ConnectionError):
                await in_thread(Peer, server.address(INSTANT))
            assert server.statistics().refused_connections == 1
            assert await in_thread(peer.say(ask(1, "a")).hear, 1) == [Ack(1)]
        await until(lambda: server.statistics().connections == 0)
        await is_well(server)


@on_both_loops
async def test_an_address_carries_the_advertised_host_and_no_secret_in_its_words() -> None:
    async with serving(Ledger().create, advertised_host="driver.example") as server:
        address = server.address(INSTANT)
    assert (address.host, address.job_key) == ("driver.example", job_key(SECRET, INSTANT))
    assert repr(address.job_key)[2:10] not in repr(address)


def unstarted(settings: ServiceSettings, secret: bytes = SECRET) -> JobServer:
    return JobServer(secret, settings, Functions(one_by_one(Ledger().create)))


@on_both_loops
async def test_there_are_addresses_only_while_the_server_runs() -> None:
    async with serving(Ledger().create) as ended:
        assert ended.address(INSTANT).port > 0
    for server in (unstarted(ServiceSettings()), ended):
        with pytest.raises(Closed, match="not running"):
            server.address(INSTANT)


@on_both_loops
async def test_a_taken_port_is_named_with_the_settings_to_change() -> None:
    async with serving(Ledger().create) as server:
        second = unstarted(ServiceSettings(port=server.address(INSTANT).port))
        with pytest.raises(InvalidRequest, match=r"cannot listen on 127\.0\.0\.1.*ServiceSettings"):
            await second.run()


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_listening_on_all_interfaces_needs_an_advertised_host(host: str) -> None:
    with pytest.raises(InvalidRequest, match="advertised_host"):
        unstarted(ServiceSettings(host=host))
    unstarted(ServiceSettings(host=host, advertised_host="driver.example"))
    unstarted(ServiceSettings(host="localhost"))


def test_a_server_with_a_short_secret_is_not_made() -> None:
    with pytest.raises(InvalidRequest, match="a secret of 31 bytes"):
        unstarted(ServiceSettings(), secret=b"s" * 31)


@on_both_loops
async def test_a_peer_that_does_not_read_its_answers_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    async def refuse(instant: str, paths: Sequence[str], io: str) -> None:
        raise Sealed("x" * 7000)

    async with peer_of(serving(refuse, send_timeout_s=0.05)) as (server, deaf):
        deaf.say(*(ask(number, "a") for number in range(1, 3000)))
        await in_thread(deaf.send)
        await until(lambda: server.statistics().connections == 0)
        assert server.statistics().requests < 2999
    assert "did not read what it was sent within 0.05 s" in caplog.text, "or the kernel has given it up"
