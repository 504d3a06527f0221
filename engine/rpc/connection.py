"""One authenticated connection of a client, blocking only for as long as it is told."""

import contextlib
import math
import secrets
import select
import socket
import time

from tallymark.engine.errors import InvalidRequest, NotAuthenticated, ServiceUnavailable, Stopped
from tallymark.engine.rpc.address import ServiceAddress
from tallymark.engine.rpc.frames import FrameReader, encode_frame
from tallymark.engine.rpc.handshake import MAC_BYTES, NONCE_BYTES, ClientHandshake, Session
from tallymark.engine.rpc.messages import (
    ANSWER_BYTES,
    WHOLE_CONNECTION,
    Answer,
    Refusal,
    Request,
    decode_answer,
    encode_request,
)
from tallymark.engine.rpc.tcp import tune

_READ_BYTES = 65536


class Call:
    """Sends requests and receives answers. Used by one thread at a time."""

    def __init__(self, raw: socket.socket, session: Session, reader: FrameReader, *, frame_bytes: int) -> None:
        self._raw = raw
        self._session = session
        self._reader = reader
        self._outgoing = bytearray()
        self._poll = select.poll()
        self._poll.register(raw, select.POLLIN)
        self._wake: socket.socket | None = None
        self._waits_to_send = False
        self.message_bytes = frame_bytes - MAC_BYTES
        """The largest message that the service takes."""

    def fileno(self) -> int:
        """Of the socket: for who waits for several calls at once."""
        return self._raw.fileno()

    @property
    def is_sending(self) -> bool:
        """Something that was said has not gone yet."""
        return bool(self._outgoing)

    def say(self, request: Request) -> None:
        """Send the request in the ``listen``s that follow."""
        self._outgoing += encode_frame(self._session.protect(encode_request(request)))

    def listen(self, wake: socket.socket, timeout_s: float | None) -> list[Answer]:
        """Send and receive what can be, waiting for that or for bytes on ``wake`` at most ``timeout_s``.

        Raises:
            OSError: the connection is gone.
            InvalidRequest: the service refuses to go on, or what came is not from it.
            Stopped: the job has ended, and its service with it.
            ServiceUnavailable: the service ended the connection and gave a reason.
        """
        if self._outgoing and not self._waits_to_send:
            self._send()
        if wake is not self._wake:
            self._poll.register(wake, select.POLLIN)
            self._wake = wake
        found = self._poll.poll(None if timeout_s is None else math.ceil(timeout_s * 1000))
        events = dict(found).get(self._raw.fileno(), 0)
        if events & select.POLLOUT:
            self._send()
        return self._receive() if events & ~select.POLLOUT else []

    def hang_up(self) -> None:
        """Close, so that the service notices even if a forked child holds a copy of the descriptor."""
        with contextlib.suppress(OSError):
            self._raw.shutdown(socket.SHUT_RDWR)
        self._raw.close()

    def drop_after_fork(self) -> None:
        """In a forked child: close the child's copy only."""
        self._raw.close()

    def _send(self) -> None:
        """As much as goes; where some is left, wait until more does."""
        with contextlib.suppress(BlockingIOError):
            del self._outgoing[: self._raw.send(self._outgoing)]
        if self._waits_to_send != bool(self._outgoing):
            self._waits_to_send = bool(self._outgoing)
            self._poll.modify(self._raw, select.POLLIN | (select.POLLOUT if self._waits_to_send else 0))

    def _receive(self) -> list[Answer]:
        try:
            data = self._raw.recv(_READ_BYTES)
        except BlockingIOError:
            return []
        if not data:
            raise ConnectionResetError("the service closed the connection")
        return [self._answer(frame) for frame in self._reader.feed(data)]

    def _answer(self, frame: bytes) -> Answer:
        answer = decode_answer(self._session.verify(frame))
        if isinstance(answer, Refusal) and answer.id == WHOLE_CONNECTION:
            is_final = isinstance(answer.error, InvalidRequest | Stopped)
            raise answer.error if is_final else ServiceUnavailable(str(answer.error))
        return answer


def dial(address: ServiceAddress, instant: str, *, timeout_s: float) -> Call:
    """Connect, and authenticate both sides, within about ``timeout_s``.

    Raises:
        OSError: nobody there, or not in time.
        NotAuthenticated: the key, the version or the kind of service is another.
        ServiceUnavailable: the service sends this client away for now.
    """
    ends_at = time.monotonic() + timeout_s
    raw = socket.create_connection((address.host, address.port), timeout=timeout_s)
    try:
        tune(raw)
        call = _authenticate(raw, address, instant, ends_at)
        raw.setblocking(False)
    except BaseException:
        raw.close()
        raise
    return call


def _authenticate(raw: socket.socket, address: ServiceAddress, instant: str, ends_at: float) -> Call:
    handshake = ClientHandshake(address.job_key, instant, nonce=secrets.token_bytes(NONCE_BYTES))
    reader = FrameReader(ANSWER_BYTES, setting="fixed for what is no block")
    message: bytes | None = handshake.hello()
    while handshake.session is None:
        if message is not None:
            _limit(raw, ends_at)
            raw.sendall(encode_frame(message))
        message = handshake.receive(_one_frame(raw, reader, ends_at))
    reader.raise_limit(
        max(ANSWER_BYTES, handshake.frame_bytes), setting="the service's own ServiceSettings.frame_bytes"
    )
    return Call(raw, handshake.session, reader, frame_bytes=handshake.frame_bytes)


def _one_frame(raw: socket.socket, reader: FrameReader, ends_at: float) -> bytes:
    """Return the service's next frame. It sends none unasked before it has welcomed the client."""
    while True:
        _limit(raw, ends_at)
        data = raw.recv(_READ_BYTES)
        if not data:
            raise ConnectionResetError(
                "the service closed the connection at once: is its limit of connections reached?"
            )
        try:
            frames = reader.feed(data)
        except InvalidRequest as error:
            raise NotAuthenticated(f"what answers there is no service of tallymark: {error}") from error
        if len(frames) > 1:
            raise NotAuthenticated("what answers there is no service of tallymark: it says more than it was asked")
        if frames:
            return frames[0]


def _limit(raw: socket.socket, ends_at: float) -> None:
    left_s = ends_at - time.monotonic()
    if left_s <= 0:
        raise TimeoutError("the service did not authenticate itself in time")
    raw.settimeout(left_s)
