"""One client of a job's service: its handshake, and its requests and responses as frames.

Owns: who it is, and the order of frames. Does not own: what its requests mean (``dispatcher``).
"""

import secrets
import socket
from collections import deque
from collections.abc import Iterable

from tallymark.engine.errors import InvalidRequest, Stopped
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
from tallymark.engine.rpc.peer import READ_BYTES, Peer
from tallymark.engine.settings import ServiceSettings


class JobPeer(Peer):
    """A ``Peer`` with the key of one job."""

    def __init__(self, raw: socket.socket, secret: bytes, settings: ServiceSettings) -> None:
        super().__init__(raw, inflight_count=settings.inflight_count)
        self._settings = settings
        self._handshake = ServerHandshake(
            secret, nonce=secrets.token_bytes(NONCE_BYTES), frame_bytes=settings.frame_bytes
        )
        self._session: Session | None = None
        self._reader = FrameReader(settings.handshake_bytes, setting="ServiceSettings.handshake_bytes")
        self._read_bytes = settings.handshake_bytes
        self._frames: deque[bytes] = deque()

    @property
    def job(self) -> str:
        """The job that it has named; it has the key of that job once it ``is_known``."""
        return self._handshake.job

    @property
    def is_known(self) -> bool:
        return self._session is not None

    @property
    def owes(self) -> bool:
        return self._session is None

    @property
    def has_requests(self) -> bool:
        return bool(self._frames)

    def feed(self, data: bytes) -> None:
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
        """As ``Peer.take``. Raises InvalidRequest: the peer did not send it, or it cannot be decoded."""
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
        self.drop_requests()
        refusal = Refusal(WHOLE_CONNECTION, error)
        if self.is_known:
            self.respond([refusal])
        else:
            self._unsent += encode_frame(encode_answer(refusal))
        self.is_leaving = True

    def say_end(self, error: Stopped) -> None:
        if self.is_known and not self.is_leaving:
            self.respond([Refusal(WHOLE_CONNECTION, error)])

    def drop_requests(self) -> None:
        self._frames.clear()
