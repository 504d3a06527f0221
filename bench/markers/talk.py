"""What a caller says to who makes markers durable, and what it hears: bytes of one connection, one question at a time.

Owns: the common ground of the sides that are asked over sockets, so that what asking costs is alike.
"""

import secrets
import socket
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from tallymark.bench.peers.hudi_markers import HudiTalk
from tallymark.engine.rpc.frames import FrameReader, encode_frame
from tallymark.engine.rpc.handshake import NONCE_BYTES, ClientHandshake, Session
from tallymark.engine.rpc.messages import ANSWER_BYTES, Ack, CreateMarkers, Refusal, decode_answer, encode_request

READ_BYTES = 65536

CONNECT_TIMEOUT_S = 30.0

Address = Mapping[str, Any]
"""``talk``, the name of one of these, and what it needs; JSON, since callers are other processes."""


class Talk(Protocol):
    def question(self, path: str) -> bytes:
        """What asks for the marker of a data file."""
        ...

    def hear(self, data: bytes) -> bool:
        """Whether the marker is durable by what has come so far. Raises where it was refused."""
        ...


def open_talk(address: Address) -> tuple[socket.socket, Talk]:
    """A connection over which markers can be asked for."""
    connection = socket.create_connection((address["host"], address["port"]), timeout=CONNECT_TIMEOUT_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    talk = _TALKS[address["talk"]](connection, address)
    connection.setblocking(False)
    return connection, talk


class OurTalk:
    """The protocol of a job's service, of one request at a time."""

    def __init__(self, connection: socket.socket, address: Address) -> None:
        self._reader = FrameReader(ANSWER_BYTES, setting="fixed")
        handshake = ClientHandshake(
            bytes.fromhex(address["job_key"]), address["instant"], nonce=secrets.token_bytes(NONCE_BYTES)
        )
        self._session = self._welcomed(connection, handshake)
        self._asked = 0

    def question(self, path: str) -> bytes:
        self._asked += 1
        return encode_frame(self._session.protect(encode_request(CreateMarkers(self._asked, (path,), "CREATE"))))

    def hear(self, data: bytes) -> bool:
        frames = self._reader.feed(data)
        for frame in frames:
            answer = decode_answer(self._session.verify(frame))
            if isinstance(answer, Refusal):
                raise answer.error
            assert answer == Ack(self._asked), f"{answer} answers no question"
        return bool(frames)

    def _welcomed(self, connection: socket.socket, handshake: ClientHandshake) -> Session:
        say: bytes | None = handshake.hello()
        while handshake.session is None:
            if say is not None:
                connection.sendall(encode_frame(say))
            [frame] = self._reader.feed(connection.recv(READ_BYTES))
            say = handshake.receive(frame)
        return handshake.session


def _hudi(_connection: socket.socket, address: Address) -> Talk:
    return HudiTalk(address["host"], address["folder"])


_TALKS: dict[str, Callable[[socket.socket, Address], Talk]] = {"ours": OurTalk, "hudi": _hudi}
