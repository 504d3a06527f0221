"""What a client has asked and not been answered: what to send next, when, and whose future an answer settles.

Sans-I/O and sync; time is passed in, in seconds of any monotonic clock. Owned by one thread.
"""

import math
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field

from tallymark.backends.errors import TallymarkError
from tallymark.engine.errors import InvalidRequest, Overloaded, ServiceOverloaded
from tallymark.engine.service.wire import Ack, Answer, CreateMarkers, Refusal, split_paths

_OVERLOAD_PAUSE_S_MIN = 0.01


@dataclass(slots=True, eq=False)
class Ask:
    """One call of a task: its future has a result when the markers of all its paths are durable."""

    paths: tuple[str, ...]
    io: str
    deadline: float
    future: Future[None] = field(default_factory=Future)
    unanswered_parts: int = 1
    was_put_off: bool = False
    """The last word from the service was that it has no room for now."""

    def __post_init__(self) -> None:
        self.future.set_running_or_notify_cancel()  # a marker that is asked for cannot be un-asked


@dataclass(frozen=True, slots=True)
class _Part:
    """As much of an ask as goes into one request."""

    ask: Ask
    paths: tuple[str, ...]
    due_at: float = float("-inf")


class Conversation:
    """Settles every ask that was added: by its answers, at its deadline, or by ``fail_all``.

    Asks are added in the order of their deadlines. Requests are idempotent, so after a lost connection whatever was not
    answered is sent again.
    """

    def __init__(self, jitter: Callable[[], float]) -> None:
        """``jitter`` returns numbers from 0 to below 1; it spreads those whom the service has told to come back."""
        self._jitter = jitter
        self._asks: dict[Ask, None] = {}
        self._unsent: list[_Part] = []
        self._sent: dict[int, _Part] = {}
        self._last_id = 0
        self._problem = "it was asked and has not answered yet"

    @property
    def is_idle(self) -> bool:
        return not self._asks

    @property
    def problem(self) -> str:
        """What last stood in the way of an answer."""
        return self._problem

    def add(self, ask: Ask) -> None:
        self._asks[ask] = None
        self._unsent.append(_Part(ask, ask.paths))

    def take_requests(self, now: float, message_bytes: int) -> list[CreateMarkers]:
        """What is to be sent now, each of at most ``message_bytes``. It counts as sent until ``lost``."""
        due = [part for part in self._unsent if part.due_at <= now]
        self._unsent = [part for part in self._unsent if part.due_at > now]
        return [request for part in due if part.ask in self._asks for request in self._requests_of(part, message_bytes)]

    def receive(self, answer: Answer, now: float) -> None:
        """An answer to a request that nobody waits for any more is ignored."""
        part = self._sent.pop(answer.id, None)
        if part is None or part.ask not in self._asks:
            return
        match answer:
            case Ack():
                self._settle_part(part.ask)
            case Refusal(error=Overloaded() as error):
                self._problem = f"the service is overloaded: {error}"
                part.ask.was_put_off = True
                pause_s = max(error.retry_after_s, _OVERLOAD_PAUSE_S_MIN) * (0.5 + self._jitter())
                self._unsent.append(_Part(part.ask, part.paths, now + pause_s))
            case Refusal(error=error):
                self._fail(part.ask, error)

    def lost(self, problem: str) -> None:
        """The connection is gone: what was sent and not answered is to be sent again."""
        self._problem = problem
        for ask in self._asks:
            ask.was_put_off = False
        self._unsent[:0] = [part for part in self._sent.values() if part.ask in self._asks]
        self._sent.clear()

    def expire(self, now: float, make_error: Callable[[], TallymarkError]) -> None:
        """Fail the asks whose deadline has come; those that were put off to the end as ServiceOverloaded."""
        while self._asks and (ask := next(iter(self._asks))).deadline <= now:
            error = make_error()
            self._fail(ask, ServiceOverloaded(str(error)) if ask.was_put_off else error)

    def fail_all(self, error: TallymarkError) -> None:
        for ask in list(self._asks):
            self._fail(ask, error)
        self._unsent.clear()
        self._sent.clear()

    def seconds_to_next(self, now: float) -> float | None:
        """How long, while the connection stands, nothing is to be done unless something arrives; None: for ever."""
        deadline_s = self.seconds_to_deadline(now)
        if deadline_s is None:
            return None
        return min(deadline_s, *(max(part.due_at - now, 0.0) for part in self._unsent), math.inf)

    def seconds_to_deadline(self, now: float) -> float | None:
        """How long until the first ask fails; None: nobody waits."""
        return max(next(iter(self._asks)).deadline - now, 0.0) if self._asks else None

    def _requests_of(self, part: _Part, message_bytes: int) -> Iterator[CreateMarkers]:
        try:
            runs = list(split_paths(part.paths, part.ask.io, message_bytes))
        except InvalidRequest as error:
            self._fail(part.ask, error)
            return
        part.ask.unanswered_parts += len(runs) - 1
        for paths in runs:
            self._last_id += 1
            self._sent[self._last_id] = _Part(part.ask, paths)
            yield CreateMarkers(self._last_id, paths, part.ask.io)

    def _settle_part(self, ask: Ask) -> None:
        ask.unanswered_parts -= 1
        if not ask.unanswered_parts:
            ask.future.set_result(None)
            del self._asks[ask]

    def _fail(self, ask: Ask, error: TallymarkError) -> None:
        ask.future.set_exception(error)
        del self._asks[ask]
