"""A client's line to the service: what ``tallymark.engine.rpc.line`` does in a thread, as a trio task.

What settles an ask, when it is sent again, who the peer is and what the bytes mean is the library's own code.
"""

from collections.abc import Sequence
from concurrent.futures import Future
from random import Random

import anyio
import trio

from tallymark.engine.errors import InvalidRequest, Overloaded, ServiceUnavailable, Stopped
from tallymark.engine.markers.name import MarkerIo
from tallymark.engine.rpc.address import ServiceAddress
from tallymark.engine.rpc.frames import FrameReader, encode_frame
from tallymark.engine.rpc.handshake import MAC_BYTES, NONCE_BYTES, ClientHandshake, Session
from tallymark.engine.rpc.line import DIAL_TIMEOUT_S, PAUSE_S_MAX, PAUSE_S_MIN, REFUSED_S_MAX
from tallymark.engine.rpc.messages import (
    ANSWER_BYTES,
    WHOLE_CONNECTION,
    Answer,
    Refusal,
    decode_answer,
    encode_request,
)
from tallymark.engine.rpc.pending_requests import Ask, Conversation
from tests.simulation.network import Network, Stream
from tests.simulation.process import Process

LOST = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, trio.TooSlowError)


class Line:
    """A ``MarkerSource``. ``run`` is to be started in the process that asks."""

    def __init__(
        self, network: Network, process: Process, address: ServiceAddress, instant: str, *, wait_s: float
    ) -> None:
        self._network = network
        self._process = process
        self._address = address
        self._instant = instant
        self._wait_s = wait_s
        self._chance: Random = network.kernel.stream(f"line of {process.name}")
        self._conversation = Conversation(self._chance.random)
        self._stream: Stream | None = None
        self._is_talking = False
        """The handshake of the stream is over: what comes from its other end are answers."""
        self._asked = trio.Event()
        self._farewell: Stopped | None = None
        self._refused_since: float | None = None

    def ask(self, paths: Sequence[str], io: MarkerIo = "CREATE") -> Future[None]:
        ask = Ask(tuple(paths), io, trio.current_time() + self._wait_s)
        self._conversation.add(ask)
        self._asked.set()
        if self._stream is not None:
            self._stream.changed.set()
        return ask.future

    async def run(self) -> None:
        failures = 0
        while True:
            await self._await_asks()
            if self._farewell is not None:
                self._conversation.fail_all(self._farewell)
                continue
            try:
                with trio.fail_after(self._dial_timeout_s()):
                    stream, session, reader, frame_bytes = await self._dial()
                failures, self._refused_since = 0, None
                await self._talk(stream, session, reader, frame_bytes - MAC_BYTES)
            except InvalidRequest as error:
                self._conversation.fail_all(error)
            except Stopped as farewell:
                self._farewell = farewell
            except (*LOST, ServiceUnavailable) as problem:
                self._count_lost_answer()
                self._conversation.lost(repr(problem))
                self._note_refusal(problem)
                await self._pause(failures)
                failures += 1
            finally:
                self._is_talking = False
                if self._stream is not None:
                    self._stream.shut()
                    self._stream = None

    async def _await_asks(self) -> None:
        self._expire()
        while self._conversation.is_idle:
            self._asked = trio.Event()
            await self._asked.wait()

    def _dial_timeout_s(self) -> float:
        left_s = self._conversation.seconds_to_deadline(trio.current_time())
        return DIAL_TIMEOUT_S if left_s is None else min(DIAL_TIMEOUT_S, max(left_s, 0.01))

    async def _dial(self) -> tuple[Stream, Session, FrameReader, int]:
        address = (self._address.host, self._address.port)
        self._stream = stream = await self._network.dial(self._process, address)
        handshake = ClientHandshake(self._address.job_key, self._instant, nonce=self._chance.randbytes(NONCE_BYTES))
        reader = FrameReader(ANSWER_BYTES, setting="fixed for answers")
        message: bytes | None = handshake.hello()
        while handshake.session is None:
            if message is not None:
                await stream.say(encode_frame(message))
            frames: list[bytes] = []
            while not frames:
                frames = reader.feed(await stream.hear())
            [frame] = frames
            message = handshake.receive(frame)
        return stream, handshake.session, reader, handshake.frame_bytes

    async def _talk(self, stream: Stream, session: Session, reader: FrameReader, message_bytes: int) -> None:
        self._is_talking = True
        while True:
            self._expire()
            now = trio.current_time()
            for request in self._conversation.take_requests(now, message_bytes):
                await stream.say(encode_frame(session.protect(encode_request(request))))
            for frame in reader.feed(stream.receive_nowait()):
                answer = _answer(session, frame)
                if isinstance(answer, Refusal) and isinstance(answer.error, Overloaded):
                    self._network.mishaps["refused as overloaded"] += 1
                self._conversation.receive(answer, trio.current_time())
            await self._something_to_do(stream, now)

    async def _something_to_do(self, stream: Stream, now: float) -> None:
        left_s = self._conversation.seconds_to_next(now)
        with trio.move_on_after(float("inf") if left_s is None else left_s):
            await stream.changed.wait()
        stream.changed = trio.Event()

    def _expire(self) -> None:
        self._conversation.expire(
            trio.current_time(), lambda _: ServiceUnavailable(f"no answer within {self._wait_s} s")
        )

    def _count_lost_answer(self) -> None:
        stream = self._stream if self._is_talking else None
        if stream is not None and stream.peer.lost_frame_count and not self._conversation.is_idle:
            self._network.mishaps["answer lost, asked again"] += 1

    def _note_refusal(self, problem: Exception) -> None:
        now = trio.current_time()
        if not isinstance(problem, ConnectionRefusedError):
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = now
        elif now - self._refused_since >= REFUSED_S_MAX:
            self._conversation.fail_all(ServiceUnavailable(f"nobody listens at {self._address.host}"))

    async def _pause(self, failures: int) -> None:
        pause_s = min(PAUSE_S_MIN * 2 ** min(failures, 10), PAUSE_S_MAX) * (0.5 + self._chance.random())
        left_s = self._conversation.seconds_to_deadline(trio.current_time())
        await trio.sleep(pause_s if left_s is None else min(pause_s, left_s))


def _answer(session: Session, frame: bytes) -> Answer:
    answer = decode_answer(session.verify(frame))
    if isinstance(answer, Refusal) and answer.id == WHOLE_CONNECTION:
        is_final = isinstance(answer.error, InvalidRequest | Stopped)
        raise answer.error if is_final else ServiceUnavailable(str(answer.error))
    return answer
