"""One peer of the service, from its first byte to its last.

Requests that come together are carried out together: those for markers by one task and with one answer on the wire, and
look-ups of what is at hand by none.

Owns: the handshake's bounds, back-pressure, answers in any order, and that a peer's end is nobody else's trouble.
Does not own: how markers are made durable, or what partitions hold (``work``), how answers travel (``outgoing``), nor
who may connect at all (``server``).
"""

import secrets
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import anyio
from anyio.abc import SocketAttribute, SocketStream, TaskGroup

from tallymark.backends.errors import TallymarkError
from tallymark.backends.events import EventLog
from tallymark.engine.errors import InvalidRequest, ServiceUnavailable, Stopped
from tallymark.engine.service.auth import MAC_BYTES, NONCE_BYTES, ServerHandshake, Session
from tallymark.engine.service.blocks import BlockCutter
from tallymark.engine.service.frame import FrameReader, encode_frame
from tallymark.engine.service.outgoing import GONE, Outgoing
from tallymark.engine.service.tcp import tune
from tallymark.engine.service.wire import (
    ANSWER_OVERHEAD_BYTES,
    PIECE_OVERHEAD_BYTES,
    WHOLE_CONNECTION,
    Ack,
    Answer,
    Blocks,
    CreateMarkers,
    LookUp,
    Piece,
    Refusal,
    Request,
    decode_request,
    encode_answer,
)
from tallymark.engine.service.work import BlocksAtHand, CreateEach, LookUpAt, Outcome, as_refusal
from tallymark.engine.settings import ServiceSettings

_READ_BYTES = 65536

_AT_HAND_COUNT_MAX = 64
"""Partitions of a look-up that is answered between two readings; one for more gets a task of its own, as does one whose
answer does not fit a frame, and the peer's other requests do not wait for it."""

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
    """Serves one peer. Keeps a task for requests in flight that came together, and none beyond ``serve``."""

    def __init__(
        self,
        stream: SocketStream,
        *,
        secret: bytes,
        settings: ServiceSettings,
        create_each: CreateEach,
        counts: ServiceCounts,
        look_up: LookUpAt | None = None,
        at_hand: BlocksAtHand | None = None,
        farewell: Stopped | None = None,
    ) -> None:
        """``farewell`` is what the peer is told when ``serve`` is cancelled. Without ``look_up`` none is answered."""
        self._stream = stream
        self._settings = settings
        self._create_each = create_each
        self._look_up = look_up
        self._at_hand = at_hand
        self._counts = counts
        self._farewell = farewell
        self._handshake = ServerHandshake(
            secret, nonce=secrets.token_bytes(NONCE_BYTES), frame_bytes=settings.frame_bytes
        )
        self._reader = FrameReader(settings.handshake_bytes, setting="ServiceSettings.handshake_bytes")
        self._read_bytes = settings.handshake_bytes
        self._frames: deque[bytes] = deque()
        self._at_hand_bytes_max = (
            settings.frame_bytes - MAC_BYTES - ANSWER_OVERHEAD_BYTES - _AT_HAND_COUNT_MAX * PIECE_OVERHEAD_BYTES
        )
        self._free = settings.inflight_count
        self._freed = anyio.Event()

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
                    reply = self._handshake.receive((await self._next_frames(1))[0])
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
        instant, timeout_s = self._handshake.instant, self._settings.send_timeout_s
        try:
            async with anyio.create_task_group() as tasks:
                scope = tasks.cancel_scope
                out = Outgoing(self._stream, session, instant=instant, timeout_s=timeout_s, scope=scope)
                try:
                    await self._read_requests(session, out, tasks)
                except InvalidRequest as error:
                    _events.warning("connection.closed", instant=instant, reason=error)
                    await out.send([Refusal(WHOLE_CONNECTION, error)])
                except GONE as error:
                    _events.debug("connection.lost", instant=instant, reason=error)
                tasks.cancel_scope.cancel()
        except anyio.get_cancelled_exc_class():
            if self._farewell is not None:
                await out.say_farewell(self._farewell)
            raise
        finally:
            self._release(self._settings.inflight_count - self._free)

    async def _read_requests(self, session: Session, out: Outgoing, tasks: TaskGroup) -> None:
        """While the limit of requests is in flight nothing is read, and the peer's sends come to a halt."""
        while True:
            while not self._free:
                self._freed = anyio.Event()
                await self._freed.wait()
            requests = [decode_request(session.verify(frame)) for frame in await self._next_frames(self._free)]
            self._counts.requests += len(requests)
            self._counts.inflight += len(requests)
            self._free -= len(requests)
            await self._begin(requests, out, tasks)

    async def _begin(self, requests: Sequence[Request], out: Outgoing, tasks: TaskGroup) -> None:
        for_markers = [request for request in requests if isinstance(request, CreateMarkers)]
        if for_markers:
            tasks.start_soon(self._create_markers, for_markers, out)
        look_ups = [request for request in requests if isinstance(request, LookUp)]
        self._counts.look_ups += len(look_ups)
        found: list[Blocks] = []
        for look_up in look_ups:
            answer = self._answer_at_hand(look_up)
            if answer is None:
                tasks.start_soon(self._answer_look_up, look_up, out)
                continue
            found.append(answer)
            if sum([piece.size for piece in answer.pieces]) > _READ_BYTES:  # large ones are not held for each other
                await self._send_last(found, out)
                found = []
        if found:
            await self._send_last(found, out)

    async def _create_markers(self, requests: Sequence[CreateMarkers], out: Outgoing) -> None:
        """Answer each of these once."""
        left = list(requests)

        async def settle(outcomes: Sequence[tuple[CreateMarkers, Outcome]]) -> None:
            if len(outcomes) == len(left):
                left.clear()
            else:
                settled = {id(request) for request, _ in outcomes}
                left[:] = [request for request in left if id(request) not in settled]
            answers = [self._answer_to(request, outcome) for request, outcome in outcomes]
            in_flight = self._settings.inflight_count - self._free
            await out.post(answers, self._release, others=in_flight > len(answers))

        instant = self._handshake.instant
        self._counts.names += sum([len(request.paths) for request in requests])
        try:
            await self._create_each(instant, requests, settle)
            assert not left, f"{len(left)} requests were not answered"
        except Exception as error:
            if not left:
                raise
            refusal = as_refusal(error, instant)
            await settle([(request, refusal) for request in left])

    def _answer_to(self, request: CreateMarkers, outcome: Outcome) -> Answer:
        if not isinstance(outcome, TallymarkError):
            return Ack(request.id)
        self._counts.refusals += 1
        return Refusal(request.id, outcome)

    def _answer_at_hand(self, request: LookUp) -> Blocks | None:
        """The whole answer, where that fits a frame and has to wait for nothing."""
        if self._at_hand is None or len(request.partitions) > _AT_HAND_COUNT_MAX:
            return None
        try:
            blocks = self._at_hand(request.position, request.hash, request.partitions)
        except Exception:  # a fault is told where the blocks are looked up, and ends that request alone
            return None
        if blocks is None or sum(map(len, blocks)) > self._at_hand_bytes_max:
            return None
        return Blocks(request.id, tuple([Piece(len(block), block) for block in blocks]))

    async def _answer_look_up(self, request: LookUp, out: Outgoing) -> None:
        answer: Answer
        try:
            answer = await self._blocks(request, out)
        except Exception as error:
            self._counts.refusals += 1
            answer = Refusal(request.id, as_refusal(error, self._handshake.instant))
        await self._send_last([answer], out)

    async def _blocks(self, request: LookUp, out: Outgoing) -> Blocks:
        """The last answer to the request; those before it are sent.

        One block at a time, so that no request takes more memory than one, and a frame.
        """
        if self._look_up is None:
            raise ServiceUnavailable("this service answers no look-ups (ViewSettings.serve)")
        block_of = await self._look_up(request.position, request.hash)
        cutter = BlockCutter(request.id, self._settings.frame_bytes - MAC_BYTES)
        for partition in request.partitions:
            for full in cutter.add(await block_of(partition)):
                await out.send([full])
        return cutter.rest()

    async def _send_last(self, answers: Sequence[Answer], out: Outgoing) -> None:
        """Send what ends as many requests: they are in flight until it is sent."""
        await out.send(answers)
        self._release(len(answers))

    def _release(self, count: int) -> None:
        self._counts.inflight -= count
        self._free += count
        self._freed.set()

    async def _next_frames(self, count: int) -> list[bytes]:
        """What has come together, and so many at most."""
        while not self._frames:
            self._frames.extend(self._reader.feed(await self._stream.receive(self._read_bytes)))
        return [self._frames.popleft() for _ in range(min(count, len(self._frames)))]
