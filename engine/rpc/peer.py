"""One peer of the service: its requests that have not run yet, and the responses that it has not taken yet.

Owns: the handshake, the bound of its requests in flight, and the order of frames. Does not own: when its socket is read
or written (``server``), nor what its requests mean (``dispatcher``). Never blocks, and has no task.
"""

import secrets
import socket
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress

import anyio

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.rpc.frames import FrameReader, encode_frame
from tallymark.engine.rpc.handshake import NONCE_BYTES, ServerHandshake, Session
from tallymark.engine.rpc.messages import (
    WHOLE_CONNECTION,
    Answer,
    Refusal,
    Request,
    decode_request,
    encode_answer,
)
from tallymark.engine.settings import ServiceSettings

READ_BYTES = 65536
"""Bytes read at once from an authenticated peer."""


class Peer:
    """A connection of one client. Its socket does not block."""

    def __init__(self, raw: socket.socket, secret: bytes, settings: ServiceSettings) -> None:
        self.raw = raw
        self.watched = 0
        """Events that the server polls its socket for."""
        self.free = settings.inflight_count
        """Number of further requests that may be in flight."""
        self.is_open = True
        self.is_leaving = False
        """Whether it was refused: nothing more is read from it, and the connection ends when it has taken its
        responses.
        """
        self.on_end: set[Callable[[], None]] = set()
        """Called when the connection has ended."""
        self.sending = anyio.Lock()
        """Senders that wait for ``room``, in their order."""
        self._settings = settings
        self._handshake = ServerHandshake(
            secret, nonce=secrets.token_bytes(NONCE_BYTES), frame_bytes=settings.frame_bytes
        )
        self._session: Session | None = None
        self._reader = FrameReader(settings.handshake_bytes, setting="ServiceSettings.handshake_bytes")
        self._read_bytes = settings.handshake_bytes
        self._frames: deque[bytes] = deque()
        self._unsent = bytearray()
        self.ending = 0
        """Requests that end with the responses that it has not taken yet."""
        self._emptied: anyio.Event | None = None

    @property
    def instant(self) -> str:
        """The job that it has named; it has the key of that job once it ``is_known``."""
        return self._handshake.instant

    @property
    def is_known(self) -> bool:
        return self._session is not None

    @property
    def inflight(self) -> int:
        """Requests that were accepted and whose answers were not sent completely."""
        return self._settings.inflight_count - self.free

    @property
    def can_continue(self) -> bool:
        """Whether it has sent a request that may be in flight now."""
        return bool(self._frames and self.free and self.is_open)

    @property
    def unsent_bytes(self) -> int:
        return len(self._unsent)

    def read(self) -> None:
        """Read its socket once.

        Raises:
            OSError: it has disconnected, or is lost.
            InvalidRequest: it is not a client of the job, or has sent bytes that cannot be a message.
        """
        try:
            data = self.raw.recv(self._read_bytes)
        except BlockingIOError:
            return
        if not data:
            raise ConnectionResetError("it has closed the connection")
        self._frames.extend(self._reader.feed(data))
        while self._session is None and self._frames:
            self._shake_hands(self._frames.popleft())

    def _shake_hands(self, frame: bytes) -> None:
        self._unsent += encode_frame(self._handshake.receive(frame))
        self._session = self._handshake.session
        if self.is_known:
            self._reader.raise_limit(self._settings.frame_bytes, setting="ServiceSettings.frame_bytes")
            self._read_bytes = READ_BYTES

    def take(self, count_max: int) -> list[Request]:
        """Return its requests, as far as they may be in flight, and at most this many.

        Raises:
            InvalidRequest: the peer did not send it, or it cannot be decoded. Nothing after it is valid.
        """
        if self._session is None:
            return []
        frames, verify = self._frames, self._session.verify
        requests = [decode_request(verify(frames.popleft())) for _ in range(min(self.free, len(frames), count_max))]
        self.free -= len(requests)
        return requests

    def respond(self, answers: Iterable[Answer], *, ending: int = 0) -> None:
        """Queue these responses in this order; that many of its requests end with them."""
        assert self._session is not None
        for answer in answers:
            self._unsent += encode_frame(self._session.protect(encode_answer(answer)))
        self.ending += ending

    def refuse(self, error: InvalidRequest) -> None:
        """Send it the reason why the connection ends, and drop its requests that have not started."""
        self._frames.clear()
        refusal = Refusal(WHOLE_CONNECTION, error)
        if self.is_known:
            self.respond([refusal])
        else:
            self._unsent += encode_frame(encode_answer(refusal))
        self.is_leaving = True

    def write(self) -> int:
        """Send what the socket accepts. Return how many requests have ended with that. Raises OSError."""
        if self._unsent:
            try:
                sent = self.raw.send(self._unsent)
            except BlockingIOError:
                return 0
            del self._unsent[:sent]
            if self._unsent:
                return 0
        if self._emptied is not None:
            self._emptied.set()
        ended, self.ending = self.ending, 0
        self.free += ended
        return ended

    async def room(self) -> None:
        """Return when nothing waits to be sent, or the connection has ended."""
        while self._unsent and self.is_open:
            if self._emptied is None or self._emptied.is_set():
                self._emptied = anyio.Event()
            await self._emptied.wait()

    def close(self) -> None:
        """End the connection, whatever it has not taken yet.

        Unread bytes would turn the close into a reset, which discards the last responses at the peer: some are read and
        dropped first.
        """
        self.is_open = False
        self._frames.clear()
        self._unsent.clear()
        if self._emptied is not None:
            self._emptied.set()
        with suppress(OSError):
            self.raw.recv(READ_BYTES)
        with suppress(OSError):  # a forked child may hold a copy of the descriptor
            self.raw.shutdown(socket.SHUT_RDWR)
        self.raw.close()
        for call in [*self.on_end]:
            call()
