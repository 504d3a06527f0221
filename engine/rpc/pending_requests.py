"""Pending requests of a client: what to send next, when, and which future a response settles.

Sans-I/O and sync. Times are passed in, in seconds of any monotonic clock. Used by one thread at a time.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Generic, TypeVar

from tallymark.backends.errors import TallymarkError
from tallymark.engine.errors import InvalidRequest, Overloaded, ServiceOverloaded, ServiceUnavailable
from tallymark.engine.rpc.messages import (
    Ack,
    Answer,
    BlockGatherer,
    Blocks,
    Commit,
    Committed,
    CreateMarkers,
    LookUp,
    Refusal,
    Request,
    check_commit_fits,
    split_paths,
)

T = TypeVar("T")

_OVERLOAD_PAUSE_S_MIN = 0.01


@dataclass(slots=True, eq=False)
class PendingRequest(ABC, Generic[T]):
    """One call of a task, and the future that it waits for. Sent as several messages if one would be too large."""

    names: tuple[str, ...]
    """Paths of data files, or partitions."""
    deadline: float
    wait_s: float = 0.0
    """The time that the deadline was computed from, for error texts."""
    future: Future[T] = field(default_factory=Future, init=False)
    open_message_count: int = field(default=1, init=False)
    was_overloaded: bool = field(default=False, init=False)
    """The last response was that the service has no room for now."""

    def __post_init__(self) -> None:
        self.future.set_running_or_notify_cancel()  # a requested marker cannot be cancelled

    @property
    @abstractmethod
    def shared_text(self) -> str:
        """The text that each of its messages contains beside the names."""

    @abstractmethod
    def message(self, request_id: int, names: tuple[str, ...]) -> Request:
        """Return the message for some of the names."""

    def split(self, names: tuple[str, ...], message_bytes: int) -> Sequence[tuple[str, ...]]:
        """Return the names of each message. Raises InvalidRequest for what fits none."""
        return list(split_paths(names, self.shared_text, message_bytes))

    @abstractmethod
    def take(self, part: "_Part", answer: Ack | Blocks | Committed) -> bool:
        """Record a response to one message; return whether that message is answered completely."""

    @abstractmethod
    def succeed(self) -> None:
        """Settle the future: all messages are answered."""


@dataclass(slots=True, eq=False)
class PendingMarkers(PendingRequest[None]):
    """Its future has a result when the markers of all paths are durable."""

    io: str = "CREATE"

    @property
    def shared_text(self) -> str:
        return self.io

    def message(self, request_id: int, names: tuple[str, ...]) -> CreateMarkers:
        return CreateMarkers(request_id, names, self.io)

    def take(self, part: "_Part", answer: Ack | Blocks | Committed) -> bool:
        if not isinstance(answer, Ack):
            raise _mismatch()
        return True

    def succeed(self) -> None:
        self.future.set_result(None)


@dataclass(slots=True, eq=False)
class PendingLookUp(PendingRequest[dict[str, bytes]]):
    """Its future has the blocks of all partitions as of a log position."""

    position: int = 0
    log_hash: str = ""
    _blocks: dict[str, bytes] = field(default_factory=dict, init=False)

    @property
    def shared_text(self) -> str:
        return self.log_hash

    def message(self, request_id: int, names: tuple[str, ...]) -> LookUp:
        return LookUp(request_id, self.position, self.log_hash, names)

    def take(self, part: "_Part", answer: Ack | Blocks | Committed) -> bool:
        if not isinstance(answer, Blocks):
            raise _mismatch()
        if part.gatherer is None:
            part.gatherer = BlockGatherer(len(part.names))
        part.gatherer.add(answer.pieces)
        if part.gatherer.is_whole:
            self._blocks.update(zip(part.names, part.gatherer.blocks, strict=True))
        return part.gatherer.is_whole

    def succeed(self) -> None:
        self.future.set_result(self._blocks)


@dataclass(slots=True, eq=False)
class PendingCommit(PendingRequest[int]):
    """Its future has the position of the commit. It is sent once: without an answer its writer reads the log."""

    commit: Commit = field(kw_only=True)
    """With any id."""
    _position: int = field(default=0, init=False)

    @property
    def shared_text(self) -> str:
        return self.commit.hash

    def message(self, request_id: int, names: tuple[str, ...]) -> Commit:
        return replace(self.commit, id=request_id)

    def split(self, names: tuple[str, ...], message_bytes: int) -> Sequence[tuple[str, ...]]:
        check_commit_fits(self.commit, message_bytes)
        return [names]

    def take(self, part: "_Part", answer: Ack | Blocks | Committed) -> bool:
        if not isinstance(answer, Committed):
            raise _mismatch()
        self._position = answer.position
        return True

    def succeed(self) -> None:
        self.future.set_result(self._position)


AnyPending = PendingMarkers | PendingLookUp | PendingCommit


@dataclass(slots=True, eq=False)
class _Part:
    """Names of a request that are sent in one message."""

    request: AnyPending
    names: tuple[str, ...]
    due_at: float = float("-inf")
    gatherer: BlockGatherer | None = None


class PendingRequests:
    """Settles every request that was added: by its responses, at its deadline, or by ``fail_all``.

    Requests of one kind are added in the order of their deadlines. Those for markers and partitions are idempotent, so
    after a lost connection each one without a response is sent again.
    """

    def __init__(self, jitter: Callable[[], float]) -> None:
        """``jitter`` returns numbers from 0 to below 1. It spreads the retries of requests that the service refused as
        overloaded.
        """
        self._jitter = jitter
        self._open: dict[type[AnyPending], dict[AnyPending, None]] = {
            kind: {} for kind in (PendingMarkers, PendingLookUp, PendingCommit)
        }
        self._unsent: list[_Part] = []
        self._sent: dict[int, _Part] = {}
        self._last_id = 0
        self._problem = "the request was sent and has no response yet"

    @property
    def is_idle(self) -> bool:
        return not any(self._open.values())

    @property
    def is_settled(self) -> bool:
        """Whether every request has its result or error. May be read from any thread."""
        return all(request.future.done() for requests in self._open.values() for request in list(requests))

    @property
    def problem(self) -> str:
        """The last reason why there is no response."""
        return self._problem

    def add(self, request: AnyPending) -> None:
        self._open[type(request)][request] = None
        self._unsent.append(_Part(request, request.names))

    def due_messages(self, now: float, message_bytes: int) -> list[Request]:
        """Return the messages to send now, each of at most ``message_bytes``. They count as sent until ``lost``."""
        if not self._unsent:
            return []
        due = [part for part in self._unsent if part.due_at <= now and self._is_open(part)]
        self._unsent = [part for part in self._unsent if part.due_at > now]
        return [message for part in due for message in self._messages(part, message_bytes)]

    def receive(self, answer: Answer, now: float) -> None:
        """Record a response; one to a request that is settled by now is ignored.

        Raises:
            InvalidRequest: the response does not fit its request.
        """
        part = self._sent.pop(answer.id, None)
        if part is None or not self._is_open(part):
            return
        if isinstance(answer, Refusal):
            self._refused(part, answer.error, now)
        elif not part.request.take(part, answer):
            self._sent[answer.id] = part  # the rest follows in another response
        else:
            self._answered(part.request)

    def lost(self, problem: str) -> None:
        """Queue each message without a response again, after a lost connection; commits fail."""
        self._problem = problem
        for request in list(self._open[PendingCommit]):
            self._fail(request, ServiceUnavailable(f"no answer to the commit: {problem}"))
        for request in self._requests():
            request.was_overloaded = False
        self._unsent[:0] = [_Part(part.request, part.names) for part in self._sent.values() if self._is_open(part)]
        self._sent.clear()

    def expire(self, now: float, make_error: Callable[[AnyPending], TallymarkError]) -> None:
        """Fail the requests whose deadline has passed, as ServiceOverloaded if the service refused them until then."""
        for requests in self._open.values():
            while requests and (request := next(iter(requests))).deadline <= now:
                error = make_error(request)
                self._fail(request, ServiceOverloaded(str(error)) if request.was_overloaded else error)

    def fail_all(self, error: TallymarkError) -> None:
        for request in list(self._requests()):
            self._fail(request, error)
        self._unsent.clear()
        self._sent.clear()

    def seconds_to_next(self, now: float) -> float | None:
        """Return the time until a message is due or a request expires; None if neither will happen."""
        deadline_s = self.seconds_to_deadline(now)
        if deadline_s is None or not self._unsent:
            return deadline_s
        return min(deadline_s, *(max(part.due_at - now, 0.0) for part in self._unsent))

    def seconds_to_deadline(self, now: float) -> float | None:
        """Return the time until the first request expires; None without a request."""
        first = [next(iter(requests)).deadline for requests in self._open.values() if requests]
        return max(min(first) - now, 0.0) if first else None

    def _requests(self) -> Iterable[AnyPending]:
        return chain.from_iterable(self._open.values())

    def _is_open(self, part: _Part) -> bool:
        return part.request in self._open[type(part.request)]

    def _messages(self, part: _Part, message_bytes: int) -> Sequence[Request]:
        """Return the messages for this part; none if its request fails because one name is too long."""
        try:
            runs = part.request.split(part.names, message_bytes)
        except InvalidRequest as error:
            self._fail(part.request, error)
            return ()
        part.request.open_message_count += len(runs) - 1
        return [self._message(_Part(part.request, names)) for names in runs]

    def _message(self, part: _Part) -> Request:
        self._last_id += 1
        self._sent[self._last_id] = part
        return part.request.message(self._last_id, part.names)

    def _refused(self, part: _Part, error: TallymarkError, now: float) -> None:
        """Retry later where the service is overloaded; otherwise fail the request."""
        if not isinstance(error, Overloaded):
            self._fail(part.request, error)
            return
        self._problem = f"the service is overloaded: {error}"
        part.request.was_overloaded = True
        pause_s = max(error.retry_after_s, _OVERLOAD_PAUSE_S_MIN) * (0.5 + self._jitter())
        self._unsent.append(_Part(part.request, part.names, now + pause_s))

    def _answered(self, request: AnyPending) -> None:
        request.open_message_count -= 1
        if not request.open_message_count:
            del self._open[type(request)][request]
            request.succeed()

    def _fail(self, request: AnyPending, error: TallymarkError) -> None:
        del self._open[type(request)][request]
        request.future.set_exception(error)


def _mismatch() -> InvalidRequest:
    return InvalidRequest("the service sent the response to another kind of request; report this as a bug")
