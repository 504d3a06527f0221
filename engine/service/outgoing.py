"""What goes to one peer: whole frames, in the order in which they were protected.

Acks of one flush are found by a task each, all at the same moment. They leave with one write: each costs both sides
more than the bytes of many acks.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

import anyio
import anyio.lowlevel
from anyio.abc import SocketStream

from tallymark.backends.events import EventLog
from tallymark.engine.errors import Stopped
from tallymark.engine.service.auth import Session
from tallymark.engine.service.frame import encode_frame
from tallymark.engine.service.wire import WHOLE_CONNECTION, Answer, Refusal, encode_answer

GONE = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, anyio.IncompleteRead, OSError)
"""What a peer that left, was reset or does not read looks like."""

_FAREWELL_S = 1.0
"""For the last word to a peer: it fits any socket's buffer, unless that peer has not read for long."""

_events = EventLog(__name__)


class Outgoing:
    """The answers to one authenticated peer. Any task of its connection may send."""

    def __init__(
        self, stream: SocketStream, session: Session, *, instant: str, timeout_s: float, scope: anyio.CancelScope
    ) -> None:
        """``scope`` is the connection's, and over when an answer could not be sent, or not within ``timeout_s``."""
        self._stream = stream
        self._session = session
        self._instant = instant
        self._timeout_s = timeout_s
        self._scope = scope
        self._sending = anyio.Lock(fast_acquire=True)
        self._is_mid_frame = False
        self._posted: list[Answer] = []
        self._is_posting = False

    async def send(self, answers: Iterable[Answer]) -> None:
        """Send these with one write, or end the connection: half a frame cannot be taken back."""
        try:
            async with self._sending:
                data = b"".join([self._frame(answer) for answer in answers])
                self._is_mid_frame = True
                self._scope.deadline = anyio.current_time() + self._timeout_s  # less than a scope of its own takes
                await self._stream.send(data)
                self._scope.deadline = math.inf
                self._is_mid_frame = False
        except GONE as error:
            self._lost(error)
        except anyio.get_cancelled_exc_class():
            if self._is_mid_frame and anyio.current_time() >= self._scope.deadline:
                self._lost(f"it did not read what it was sent within {self._timeout_s:g} s")
            elif self._is_mid_frame:
                self._scope.cancel()
            raise

    async def post(self, answers: Sequence[Answer], sent: Callable[[int], None], *, others: bool = True) -> None:
        """Send these, or return at once where another task is about to: then they go with its next write.

        Whether there are ``others`` who may post at this moment is for the caller to say: without them, nobody is
        waited for.
        ``sent`` is called with how many have left, whoever has sent them. It has to be the same one each time.
        """
        self._posted += answers
        if self._is_posting:
            return
        self._is_posting = True
        try:
            if others:
                await anyio.lowlevel.checkpoint()
            while self._posted:
                posted, self._posted = self._posted, []
                await self.send(posted)
                sent(len(posted))
        finally:
            self._is_posting = False

    async def say_farewell(self, farewell: Stopped) -> None:
        """Without it a task would take the end of its job for a lost connection, and go on asking."""
        if self._is_mid_frame:  # half a frame cannot be finished any more
            return
        with anyio.CancelScope(shield=True), anyio.move_on_after(_FAREWELL_S), suppress(*GONE):
            await self._stream.send(self._frame(Refusal(WHOLE_CONNECTION, farewell)))

    def _lost(self, reason: object) -> None:
        _events.info("connection.lost", instant=self._instant, reason=reason)
        self._scope.cancel()

    def _frame(self, answer: Answer) -> bytes:
        return encode_frame(self._session.protect(encode_answer(answer)))
