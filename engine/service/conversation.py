"""What a client has asked and not been answered: what to send next, when, and whose future an answer settles.

Sans-I/O and sync; time is passed in, in seconds of any monotonic clock. Owned by one thread.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from tallymark.backends.errors import TallymarkError
from tallymark.engine.errors import InvalidRequest, Overloaded, ServiceOverloaded
from tallymark.engine.service.ask import AnyAsk, AnyPart
from tallymark.engine.service.ask import Ask as Ask
from tallymark.engine.service.ask import LookUpAsk as LookUpAsk
from tallymark.engine.service.wire import Answer, Refusal, Request

_OVERLOAD_PAUSE_S_MIN = 0.01


@dataclass(frozen=True, slots=True)
class _Unsent:
    part: AnyPart
    due_at: float = float("-inf")


class Conversation:
    """Settles every ask that was added: by its answers, at its deadline, or by ``fail_all``.

    Asks of one kind are added in the order of their deadlines. Requests are idempotent, so after a lost connection
    whatever was not answered is sent again.
    """

    def __init__(self, jitter: Callable[[], float]) -> None:
        """``jitter`` returns numbers from 0 to below 1; it spreads those whom the service has told to come back."""
        self._jitter = jitter
        self._asks: dict[type[AnyAsk], dict[AnyAsk, None]] = {Ask: {}, LookUpAsk: {}}
        self._unsent: list[_Unsent] = []
        self._sent: dict[int, AnyPart] = {}
        self._last_id = 0
        self._problem = "it was asked and has not answered yet"

    @property
    def is_idle(self) -> bool:
        return not any(self._asks.values())

    @property
    def problem(self) -> str:
        """What last stood in the way of an answer."""
        return self._problem

    def add(self, ask: AnyAsk) -> None:
        self._asks[type(ask)][ask] = None
        self._unsent.append(_Unsent(ask.whole()))

    def take_requests(self, now: float, message_bytes: int) -> list[Request]:
        """What is to be sent now, each of at most ``message_bytes``. It counts as sent until ``lost``."""
        due = [unsent.part for unsent in self._unsent if unsent.due_at <= now]
        self._unsent = [unsent for unsent in self._unsent if unsent.due_at > now]
        return [request for part in due if self._awaits(part) for request in self._requests_of(part, message_bytes)]

    def receive(self, answer: Answer, now: float) -> None:
        """An answer to a request that nobody waits for any more is ignored.

        Raises:
            InvalidRequest: it does not fit its request.
        """
        part = self._sent.pop(answer.id, None)
        if part is None or not self._awaits(part):
            return
        match answer:
            case Refusal(error=Overloaded() as error):
                self._problem = f"the service is overloaded: {error}"
                part.ask.was_put_off = True
                pause_s = max(error.retry_after_s, _OVERLOAD_PAUSE_S_MIN) * (0.5 + self._jitter())
                self._unsent.append(_Unsent(part, now + pause_s))
            case Refusal(error=error):
                self._fail(part.ask, error)
            case _ if part.take(answer):
                self._settle(part)
            case _:
                self._sent[answer.id] = part  # the rest follows in another answer

    def lost(self, problem: str) -> None:
        """The connection is gone: what was sent and not answered is to be sent again."""
        self._problem = problem
        for ask in self._waiting():
            ask.was_put_off = False
        self._unsent[:0] = [_Unsent(part) for part in self._sent.values() if self._awaits(part)]
        self._sent.clear()

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
        if deadline_s is None:
            return None
        return min(deadline_s, *(max(unsent.due_at - now, 0.0) for unsent in self._unsent), math.inf)

    def seconds_to_deadline(self, now: float) -> float | None:
        """How long until the first ask fails; None: nobody waits."""
        first = (next(iter(asks)).deadline for asks in self._asks.values() if asks)
        deadline = min(first, default=None)
        return None if deadline is None else max(deadline - now, 0.0)

    def _waiting(self) -> Iterable[AnyAsk]:
        return chain.from_iterable(self._asks.values())

    def _awaits(self, part: AnyPart) -> bool:
        return part.ask in self._asks[type(part.ask)]

    def _requests_of(self, part: AnyPart, message_bytes: int) -> Iterator[Request]:
        try:
            parts: list[AnyPart] = list(part.split(message_bytes))
        except InvalidRequest as error:
            self._fail(part.ask, error)
            return
        part.ask.unanswered_parts += len(parts) - 1
        for each in parts:
            self._last_id += 1
            self._sent[self._last_id] = each
            yield each.request(self._last_id)

    def _settle(self, part: AnyPart) -> None:
        part.ask.unanswered_parts -= 1
        if not part.ask.unanswered_parts:
            del self._asks[type(part.ask)][part.ask]
            part.settle()

    def _fail(self, ask: AnyAsk, error: TallymarkError) -> None:
        del self._asks[type(ask)][ask]
        ask.fail(error)
