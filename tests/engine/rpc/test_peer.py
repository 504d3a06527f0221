"""One peer, at the end of a socket pair: no loop, no waiting."""

import socket
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest

from tallymark.engine.errors import InvalidRequest, NotAuthenticated, Sealed
from tallymark.engine.rpc.connection import ClientSession
from tallymark.engine.rpc.frames import encode_frame
from tallymark.engine.rpc.handshake import NONCE_BYTES, ServiceAddress, job_key
from tallymark.engine.rpc.job_peer import JobPeer
from tallymark.engine.rpc.messages import Ack, Answer, CreateMarkers, Refusal
from tallymark.engine.settings import ServiceSettings
from tests.engine.rpc.serving import INSTANT, SECRET, ask

LARGE = Refusal(1, Sealed("x" * 7000))


class FarEnd:
    """What the peer's own side does, step by step."""

    def __init__(self, raw: socket.socket) -> None:
        raw.setblocking(False)
        self.raw = raw
        address = ServiceAddress("of no host", 0, job_key(SECRET, INSTANT))
        self.session = ClientSession(address, INSTANT, nonce=bytes(NONCE_BYTES))

    def say(self, *requests: CreateMarkers) -> None:
        for request in requests:
            self.session.send(request)
        self.raw.sendall(self.session.outgoing)
        self.session.outgoing.clear()

    def heard(self) -> list[Answer]:
        """What there is of answers now."""
        answers: list[Answer] = []
        with suppress(BlockingIOError):
            while data := self.raw.recv(1 << 16):
                answers += self.session.receive(data)
        return answers


@pytest.fixture
def ends() -> Iterator[tuple[JobPeer, FarEnd]]:
    near, far = socket.socketpair()
    near.setblocking(False)
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    with closing(near), closing(far):
        yield JobPeer(near, SECRET, ServiceSettings(inflight_count=3)), FarEnd(far)


@pytest.fixture
def known(ends: tuple[JobPeer, FarEnd]) -> tuple[JobPeer, FarEnd]:
    peer, far = ends
    while not far.session.is_authenticated:
        far.say()
        peer.read()
        peer.write()
        far.heard()
    assert peer.is_known
    assert peer.job == INSTANT
    return peer, far


@pytest.mark.parametrize("rounds", [1, 2], ids=["challenge", "welcome"])
def test_a_client_that_was_stopped_in_the_handshake_reads_why_the_service_has_ended_it(
    ends: tuple[JobPeer, FarEnd], rounds: int
) -> None:
    peer, far = ends
    for _ in range(rounds):
        far.heard()
        far.say()
        peer.read()
        if peer.is_known or rounds == 1:
            peer.refuse(InvalidRequest("it took too long"))
        peer.write()
    with pytest.raises(InvalidRequest, match="it took too long"):
        far.heard()


def test_what_comes_with_the_last_word_of_the_handshake_is_a_request(ends: tuple[JobPeer, FarEnd]) -> None:
    peer, far = ends
    far.say()
    peer.read()
    assert (peer.is_known, peer.take(9)) == (False, [])
    peer.write()
    far.heard()
    far.session.outgoing += encode_frame(bytes(40))
    far.say()
    peer.read()
    assert (peer.is_known, peer.can_continue) == (True, True)
    with pytest.raises(NotAuthenticated):
        peer.take(9)


def test_requests_end_when_all_they_were_told_has_left(known: tuple[JobPeer, FarEnd]) -> None:
    peer, far = known
    far.say(ask(1, "a.parquet"), ask(2, "b.parquet"))
    peer.read()
    assert len(peer.take(9)) == 2
    peer.respond([LARGE] * 40, ending=1)
    assert peer.write() == 0
    assert (peer.unsent_bytes > 0, peer.inflight) == (True, 2)
    peer.respond([Ack(2)], ending=1)
    heard: list[Answer] = []
    ended: list[int] = []
    while peer.unsent_bytes:
        heard += far.heard()
        ended.append(peer.write())
    heard += far.heard()
    assert [answer.id for answer in heard] == [1] * 40 + [2]
    assert (sum(ended), ended[-1]) == (2, 2)
    assert (peer.inflight, peer.write()) == (0, 0)


def test_a_refusal_is_heard_although_much_of_what_it_said_was_not_read(known: tuple[JobPeer, FarEnd]) -> None:
    peer, far = known
    far.raw.sendall(bytes(50_000))
    peer.refuse(InvalidRequest("go away"))
    peer.write()
    peer.close()
    with pytest.raises(InvalidRequest, match="go away"):
        far.heard()
    assert not peer.is_open


def test_its_end_is_an_error_and_silence_is_none(known: tuple[JobPeer, FarEnd]) -> None:
    peer, far = known
    peer.read()
    assert not peer.can_continue
    far.raw.close()
    with pytest.raises(ConnectionResetError, match="closed"):
        peer.read()
    peer.respond([Ack(1)])
    with pytest.raises(OSError, match=r"."):
        peer.write()
