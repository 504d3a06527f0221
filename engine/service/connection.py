"""One peer of the service, from its first byte to its last.

Owns: the handshake's bounds, back-pressure, answers in any order, and that a peer's end is nobody else's trouble.
Does not own: how markers are made durable (``create``), what partitions hold (``look_up``), nor who may connect at all
(``server``).
"""

import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

import anyio
from anyio.abc import SocketAttribute, SocketStream, TaskGroup

from tallymark.backends.errors import TallymarkError
from tallymark.backends.events import EventLog
from tallymark.engine.errors import InvalidRequest, ServiceUnavailable, Stopped
from tallymark.engine.service.auth import MAC_BYTES, NONCE_BYTES, ServerHandshake, Session
from tallymark.engine.service.blocks import BlockCutter
from tallymark.engine.service.frame import FrameReader, encode_frame
from tallymark.engine.service.tcp import tune
from tallymark.engine.service.wire import (
    WHOLE_CONNECTION,
    Ack,
    Answer,
    Blocks,
    CreateMarkers,
    LookUp,
    Refusal,
    Request,
    decode_request,
    encode_answer,
)
from tallymark.engine.settings import ServiceSettings

Create = Callable[[str, Sequence[str], str], Awaitable[None]]
"""create(instant, paths, io) returns when the markers of all paths are durable, or raises a TallymarkError."""

BlockOf = Callable[[str], Awaitable[bytes]]
LookUpAt = Callable[[int, str], Awaitable[BlockOf]]
"""look_up(position, hash) returns what gives the block of a partition as of that position, or raises a TallymarkError,
as may the call for a block.
"""

GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, anyio.IncompleteRead, OSError)
"""What a peer that left, was reset or does not read looks like."""

Send = Callable[[Answer], Awaitable[None]]

_READ_BYTES = 65536

_FAREWELL_S = 1.0
"""For the last word to a peer: it fits any socket's buffer, unless that peer has not read for long."""

_events = EventLog(__name__)


@dataclass(slots=True)
class ServiceCounts:
    """What the connections of one service add up to."""

    connections: int = 0
    refused_connections: int = 0
    requests: int = 0
    inflight: int = 0
    names: int = 0
    look_ups: int = 0
    refusals: int = 0


class Connection:
    """Serves one peer. Keeps a task for each request in flight, and none beyond ``serve``."""

    def __init__(
        self,
        stream: SocketStream,
        *,
        secret: bytes,
        settings: ServiceSettings,
        create: Create,
        counts: ServiceCounts,
        look_up: LookUpAt | None = None,
        farewell: Stopped | None = None,
    ) -> None:
        """``farewell`` is what the peer is told when ``serve`` is cancelled. Without ``look_up`` none is answered."""
        self._stream = stream
        self._settings = settings
        self._create = create
        self._look_up = look_up
        self._counts = counts
        self._farewell = farewell
        self._handshake = ServerHandshake(
            secret, nonce=secrets.token_bytes(NONCE_BYTES), frame_bytes=settings.frame_bytes
        )
        self._reader = FrameReader(settings.handshake_bytes, setting="ServiceSettings.handshake_bytes")
        self._read_bytes = settings.handshake_bytes
        self._frames: deque[bytes] = deque()
        self._slots = anyio.Semaphore(settings.inflight_count)
        self._sending = anyio.Lock()
        self._is_mid_frame = False

    async def serve(self) -> None:
        """Returns when the peer is gone or was sent away; the stream is closed then. Does not raise for any peer."""
        async with self._stream:
            try:
                tune(self._stream.extra(SocketAttribute.raw_socket))  # noqa: S610  # no Django here
                session = await self._authenticate()
                if session is None:
                    self._counts.refused_connections += 1
                else:
                    await self._serve_requests(session)
            except GONE as error:
                _events.debug("connection.lost", instant=self._handshake.instant or None, reason=error)

    async def _authenticate(self) -> Session | None:
        """The session, or None for a peer that has not shown the key of a job within the bounds."""
        with anyio.move_on_after(self._settings.handshake_timeout_s):
            try:
                while self._handshake.session is None:
                    reply = self._handshake.receive(await self._next_frame())
                    await self._stream.send(encode_frame(reply))
            except InvalidRequest as error:
                _events.warning("connection.refused", reason=error)
                await self._stream.send(encode_frame(encode_answer(Refusal(WHOLE_CONNECTION, error))))
                return None
            except GONE:
                return None
        return self._handshake.session

    async def _serve_requests(self, session: Session) -> None:
        self._reader.raise_limit(self._settings.frame_bytes, setting="ServiceSettings.frame_bytes")
        self._read_bytes = _READ_BYTES
        try:
            async with anyio.create_task_group() as tasks:
                try:
                    await self._read_requests(session, tasks)
                except InvalidRequest as error:
                    _events.warning("connection.closed", instant=self._handshake.instant, reason=error)
                    await self._send_if_there(session, Refusal(WHOLE_CONNECTION, error), tasks=tasks)
                except GONE as error:
                    _events.debug("connection.lost", instant=self._handshake.instant, reason=error)
                tasks.cancel_scope.cancel()
        except anyio.get_cancelled_exc_class():
            await self._say_farewell(session)
            raise

    async def _read_requests(self, session: Session, tasks: TaskGroup) -> None:
        """While the limit of requests is in flight nothing is read, and the peer's sends come to a halt."""
        while True:
            request = decode_request(session.verify(await self._next_frame()))
            await self._slots.acquire()
            tasks.start_soon(self._answer, session, request, tasks)

    async def _answer(self, session: Session, request: Request, tasks: TaskGroup) -> None:
        self._counts.requests += 1
        self._counts.inflight += 1
        send = partial(self._send_if_there, session, tasks=tasks)
        try:
            await send(await self._carry_out(request, send))
        finally:
            self._counts.inflight -= 1
            self._slots.release()

    async def _carry_out(self, request: Request, send: Send) -> Answer:
        """The last answer to the request; those before it are sent."""
        try:
            match request:
                case CreateMarkers():
                    return await self._create_markers(request)
                case LookUp():
                    return await self._blocks(request, send)
        except TallymarkError as error:
            self._counts.refusals += 1
            return Refusal(request.id, error)
        except Exception as error:
            _events.fault("request.failed", instant=self._handshake.instant)
            self._counts.refusals += 1
            return Refusal(request.id, ServiceUnavailable(f"the service failed: {error!r}; its log says more"))

    async def _create_markers(self, request: CreateMarkers) -> Ack:
        self._counts.names += len(request.paths)
        await self._create(self._handshake.instant, request.paths, request.io)
        return Ack(request.id)

    async def _blocks(self, request: LookUp, send: Send) -> Blocks:
        """One block at a time, so that no request takes more memory than one, and a frame."""
        self._counts.look_ups += 1
        if self._look_up is None:
            raise ServiceUnavailable("this service answers no look-ups (ViewSettings.serve)")
        block_of = await self._look_up(request.position, request.hash)
        cutter = BlockCutter(request.id, self._settings.frame_bytes - MAC_BYTES)
        for partition in request.partitions:
            for full in cutter.add(await block_of(partition)):
                await send(full)
        return cutter.rest()

    async def _send_if_there(self, session: Session, answer: Answer, *, tasks: TaskGroup) -> None:
        """Send the answer, or end the connection: half a frame cannot be taken back."""
        try:
            with anyio.fail_after(self._settings.send_timeout_s):
                async with self._sending:
                    self._is_mid_frame = True
                    await self._stream.send(encode_frame(session.protect(encode_answer(answer))))
                    self._is_mid_frame = False
        except (*GONE, TimeoutError) as error:
            _events.info("connection.lost", instant=self._handshake.instant, reason=error)
            tasks.cancel_scope.cancel()

    async def _say_farewell(self, session: Session) -> None:
        """Without it a task would take the end of its job for a lost connection, and go on asking."""
        if self._farewell is None or self._is_mid_frame:  # half a frame cannot be finished any more
            return
        frame = encode_frame(session.protect(encode_answer(Refusal(WHOLE_CONNECTION, self._farewell))))
        with anyio.CancelScope(shield=True), anyio.move_on_after(_FAREWELL_S), suppress(*GONE):
            await self._stream.send(frame)

    async def _next_frame(self) -> bytes:
        while not self._frames:
            self._frames.extend(self._reader.feed(await self._stream.receive(self._read_bytes)))
        return self._frames.popleft()
