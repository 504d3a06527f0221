"""One peer, at the end of a socket pair: no loop, no waiting."""

import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from tallymark.engine.errors import InvalidRequest, NotAuthenticated, Sealed
from tallymark.engine.rpc.frames import FrameReader, encode_frame
from tallymark.engine.rpc.handshake import NONCE_BYTES, ClientHandshake, Session, job_key
from tallymark.engine.rpc.messages import Ack, Answer, CreateMarkers, Refusal, decode_answer, encode_request
from tallymark.engine.rpc.peer import Peer
from tallymark.engine.settings import ServiceSettings
from tests.engine.rpc.serving import INSTANT, SECRET

LARGE = Refusal(1, Sealed("x" * 7000))


class FarEnd:
    """What the peer's own side does, step by step."""

    def __init__(self, raw: socket.socket) -> None:
        raw.setblocking(False)
        self.raw = raw
        self.reader = FrameReader(1 << 20, setting="of the test")
        self.session: Session | None = None

    def shake_hands(self, peer: Peer) -> None:
        handshake = ClientHandshake(job_key(SECRET, INSTANT), INSTANT, nonce=bytes(NONCE_BYTES))
        message: bytes | None = handshake.hello()
        while message is not None:
            self.raw.sendall(encode_frame(message))
            peer.read()
            peer.write()
            [frame] = self.reader.feed(self.raw.recv(4096))
            message = handshake.receive(frame)
        self.session = handshake.session

    def frame(self, request: CreateMarkers) -> bytes:
        assert self.session is not None
        return encode_frame(self.session.protect(encode_request(request)))

    def heard(self) -> list[Answer]:
        """What there is of answers now."""
        assert self.session is not None
        answers: list[Answer] = []
        while True:
            try:
                data = self.raw.recv(1 << 16)
            except BlockingIOError:
                return answers
            if not data:
                return answers
            answers += [decode_answer(self.session.verify(frame)) for frame in self.reader.feed(data)]


def ask(number: int) -> CreateMarkers:
    return CreateMarkers(number, (f"p={number}/a.parquet",), "CREATE")


@pytest.fixture
def ends() -> Iterator[tuple[Peer, FarEnd]]:
    near, far = socket.socketpair()
    near.setblocking(False)
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    with closing(near), closing(far):
        yield Peer(near, SECRET, ServiceSettings(inflight_count=3)), FarEnd(far)


@pytest.fixture
def known(ends: tuple[Peer, FarEnd]) -> tuple[Peer, FarEnd]:
    peer, far = ends
    far.shake_hands(peer)
    assert peer.is_known
    assert peer.instant == INSTANT
    return peer, far


def test_what_comes_with_the_last_word_of_the_handshake_is_a_request(ends: tuple[Peer, FarEnd]) -> None:
    peer, far = ends
    handshake = ClientHandshake(job_key(SECRET, INSTANT), INSTANT, nonce=bytes(NONCE_BYTES))
    far.raw.sendall(encode_frame(handshake.hello()))
    peer.read()
    assert (peer.is_known, peer.take(9)) == (False, [])
    peer.write()
    [challenge] = far.reader.feed(far.raw.recv(4096))
    proof = handshake.receive(challenge)
    assert proof is not None
    far.raw.sendall(encode_frame(proof) + encode_frame(bytes(40)))
    peer.read()
    assert (peer.is_known, peer.can_continue) == (True, True)
    with pytest.raises(NotAuthenticated):
        peer.take(9)


def test_requests_end_when_all_they_were_told_has_left(known: tuple[Peer, FarEnd]) -> None:
    peer, far = known
    far.raw.sendall(far.frame(ask(1)) + far.frame(ask(2)))
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


def test_a_refusal_is_heard_although_much_of_what_it_said_was_not_read(known: tuple[Peer, FarEnd]) -> None:
    peer, far = known
    far.raw.sendall(bytes(50_000))
    peer.refuse(InvalidRequest("go away"))
    peer.write()
    peer.close()
    [answer] = far.heard()[:1]
    assert isinstance(answer, Refusal)
    assert str(answer.error) == "go away"
    assert not peer.is_open


def test_its_end_is_an_error_and_silence_is_none(known: tuple[Peer, FarEnd]) -> None:
    peer, far = known
    peer.read()
    assert not peer.can_continue
    far.raw.close()
    with pytest.raises(ConnectionResetError, match="closed"):
        peer.read()
    peer.respond([Ack(1)])
    with pytest.raises(OSError, match=r"."):
        peer.write()
