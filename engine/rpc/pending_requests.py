"""Pending requests of a client: what to send next, when, and which future a response settles.

Sans-I/O and sync; time is passed in, in seconds of any monotonic clock. Used by one thread at a time.
"""

import math
from collections.abc import Callable, Iterable
from itertools import chain

from tallymark.backends.errors import TallymarkError
from tallymark.engine.errors import InvalidRequest, Overloaded, ServiceOverloaded
from tallymark.engine.rpc.ask import AnyAsk, AnyPart
from tallymark.engine.rpc.ask import Ask as Ask
from tallymark.engine.rpc.ask import LookUpAsk as LookUpAsk
from tallymark.engine.rpc.joining import Unsent, joined, may_be_one_s_fault, request_of
from tallymark.engine.rpc.messages import Answer, Refusal, Request

_OVERLOAD_PAUSE_S_MIN = 0.01


class Conversation:
    """Settles every ask that was added: by its answers, at its deadline, or by ``fail_all``.

    Asks of one kind are added in the order of their deadlines. Requests are idempotent, so after a lost connection
    whatever was not answered is sent again.
    """

    def __init__(self, jitter: Callable[[], float]) -> None:
        """``jitter`` returns numbers from 0 to below 1; it spreads those whom the service has told to come back."""
        self._jitter = jitter
        self._asks: dict[type[AnyAsk], dict[AnyAsk, None]] = {Ask: {}, LookUpAsk: {}}
        self._unsent: list[Unsent] = []
        self._sent: dict[int, list[AnyPart]] = {}
        self._last_id = 0
        self._problem = "it was asked and has not answered yet"

    @property
    def is_idle(self) -> bool:
        return not any(self._asks.values())

    @property
    def is_settled(self) -> bool:
        """Every ask has been answered; for any thread."""
        return all(ask.future.done() for asks in self._asks.values() for ask in list(asks))

    @property
    def problem(self) -> str:
        """What last stood in the way of an answer."""
        return self._problem

    def add(self, ask: AnyAsk) -> None:
        self._asks[type(ask)][ask] = None
        self._unsent.append(Unsent(ask.whole()))

    def take_requests(self, now: float, message_bytes: int) -> list[Request]:
        """Return what is to be sent now, each of at most ``message_bytes``. It counts as sent until ``lost``."""
        if not self._unsent:
            return []
        due = [unsent for unsent in self._unsent if unsent.due_at <= now and self._awaits(unsent.part)]
        self._unsent = [unsent for unsent in self._unsent if unsent.due_at > now]
        return [
            self._request_of(each)
            for parts in joined(due, message_bytes)
            for each in ([parts] if len(parts) > 1 else self._split(parts[0], message_bytes))
        ]

    def receive(self, answer: Answer, now: float) -> None:
        """An answer to a request that nobody waits for any more is ignored.

        Raises:
            InvalidRequest: it does not fit its request.
        """
        parts = [part for part in self._sent.pop(answer.id, ()) if self._awaits(part)]
        if isinstance(answer, Refusal):
            self._refused(parts, answer.error, now)
            return
        for part in parts:
            if not part.take(answer):
                self._sent[answer.id] = [part]  # the rest follows in another answer
            elif self._awaits(part):  # it does no more if another part of its ask has just failed it
                self._settle(part)

    def lost(self, problem: str) -> None:
        """The connection is gone: what was sent and not answered is to be sent again."""
        self._problem = problem
        for ask in self._waiting():
            ask.was_put_off = False
        self._unsent[:0] = [Unsent(part) for parts in self._sent.values() for part in parts if self._awaits(part)]
        self._sent.clear()

    def begin_anew(self) -> None:
        """Whoever had it was interrupted in the middle of anything: what is not settled is to be sent again, whole."""
        for ask in list(self._waiting()):
            if ask.future.done():
                del self._asks[type(ask)][ask]
            ask.unanswered_parts = 1
        self._sent.clear()
        self._unsent = [Unsent(ask.whole()) for ask in self._waiting()]

    def expire(self, now: float, make_error: Callable[[AnyAsk], TallymarkError]) -> None:
        """Fail the asks whose deadline has come; those that were put off to the end as ServiceOverloaded."""
        for asks in self._asks.values():
            while asks and (ask := next(iter(asks))).deadline <= now:
                error = make_error(ask)
                self._fail(ask, ServiceOverloaded(str(error)) if ask.was_put_off else error)

    def fail_all(self, error: TallymarkError) -> None:
        for ask in list(self._waiting()):
            self._fail(ask, error)
        self._unsent.clear()
        self._sent.clear()

    def seconds_to_next(self, now: float) -> float | None:
        """How long, while the connection stands, nothing is to be done unless something arrives; None: for ever."""
        deadline_s = self.seconds_to_deadline(now)
        if deadline_s is None or not self._unsent:
            return deadline_s
        return min(deadline_s, *(max(unsent.due_at - now, 0.0) for unsent in self._unsent), math.inf)

    def seconds_to_deadline(self, now: float) -> float | None:
        """Return how long until the first ask fails; None: nobody waits."""
        first = [next(iter(asks)).deadline for asks in self._asks.values() if asks]
        return max(min(first) - now, 0.0) if first else None

    def _waiting(self) -> Iterable[AnyAsk]:
        return chain.from_iterable(self._asks.values())

    def _awaits(self, part: AnyPart) -> bool:
        return part.ask in self._asks[type(part.ask)]

    def _split(self, part: AnyPart, message_bytes: int) -> list[list[AnyPart]]:
        """Return what goes into one request each; nothing if the ask has failed."""
        try:
            parts: list[AnyPart] = list(part.split(message_bytes))
        except InvalidRequest as error:
            self._fail(part.ask, error)
            return []
        part.ask.unanswered_parts += len(parts) - 1
        return [[each] for each in parts]

    def _request_of(self, parts: list[AnyPart]) -> Request:
        self._last_id += 1
        self._sent[self._last_id] = parts
        return request_of(self._last_id, parts)

    def _refused(self, parts: list[AnyPart], error: TallymarkError, now: float) -> None:
        """Ask again what may have room later, or was refused for another's fault; fail the rest."""
        due_at = now
        if isinstance(error, Overloaded):
            self._problem = f"the service is overloaded: {error}"
            for part in parts:
                part.ask.was_put_off = True
            due_at += max(error.retry_after_s, _OVERLOAD_PAUSE_S_MIN) * (0.5 + self._jitter())
        elif len(parts) < 2 or not may_be_one_s_fault(error):
            for part in parts:
                if self._awaits(part):
                    self._fail(part.ask, error)
            return
        joined_max = max(1, len(parts) // 2)
        self._unsent += [Unsent(part, due_at, joined_max) for part in parts]

    def _settle(self, part: AnyPart) -> None:
        part.ask.unanswered_parts -= 1
        if not part.ask.unanswered_parts:
            part.settle()
            del self._asks[type(part.ask)][part.ask]

    def _fail(self, ask: AnyAsk, error: TallymarkError) -> None:
        ask.fail(error)
        del self._asks[type(ask)][ask]
