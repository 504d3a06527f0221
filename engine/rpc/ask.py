"""Requests of tasks: how they are split into messages, and what settles them. Sans-I/O; one thread at a time."""

from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from tallymark.backends.errors import TallymarkError
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.rpc.blocks import BlockGatherer
from tallymark.engine.rpc.messages import Ack, Blocks, split_paths

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class _Waiting(Generic[T]):
    """What all asks have in common."""

    future: Future[T] = field(default_factory=Future, kw_only=True)
    wait_s: float = field(default=0.0, kw_only=True)
    """What the deadline was made with, for words."""
    unanswered_parts: int = field(default=1, kw_only=True)
    was_put_off: bool = field(default=False, kw_only=True)
    """The last word from the service was that it has no room for now."""

    def __post_init__(self) -> None:
        self.future.set_running_or_notify_cancel()  # a marker that is asked for cannot be un-asked

    def fail(self, error: TallymarkError) -> None:
        self.future.set_exception(error)


@dataclass(slots=True, eq=False)
class Ask(_Waiting[None]):
    """One call of a task: its future has a result when the markers of all its paths are durable."""

    paths: tuple[str, ...]
    io: str
    deadline: float

    def whole(self) -> "AskPart":
        return AskPart(self, self.paths)


@dataclass(slots=True, eq=False)
class LookUpAsk(_Waiting[dict[str, bytes]]):
    """One call of a task: its future has the blocks of all its partitions as of a position, or an error."""

    position: int
    hash: str
    partitions: tuple[str, ...]
    deadline: float
    blocks: dict[str, bytes] = field(default_factory=dict, init=False)

    def whole(self) -> "LookUpPart":
        return LookUpPart(self, self.partitions)


@dataclass(slots=True, eq=False)
class AskPart:
    """As much of an ask as goes into one request."""

    ask: Ask
    paths: tuple[str, ...]

    def split(self, message_bytes: int) -> "Iterator[AskPart]":
        """Parts whose requests are no larger. Raises InvalidRequest: one path alone is too long."""
        return (AskPart(self.ask, run) for run in split_paths(self.paths, self.ask.io, message_bytes))

    def take(self, answer: Ack | Blocks) -> bool:
        """Return whether the part is answered now."""
        if not isinstance(answer, Ack):
            raise _misunderstood()
        return True

    def settle(self) -> None:
        """All parts of the ask are answered."""
        self.ask.future.set_result(None)


@dataclass(slots=True, eq=False)
class LookUpPart:
    """As much of a look-up as goes into one request, and what came of it so far: split anew, that is forgotten."""

    ask: LookUpAsk
    partitions: tuple[str, ...]
    _gathered: BlockGatherer = field(init=False)

    def __post_init__(self) -> None:
        self._gathered = BlockGatherer(len(self.partitions))

    def split(self, message_bytes: int) -> "Iterator[LookUpPart]":
        return (LookUpPart(self.ask, run) for run in split_paths(self.partitions, self.ask.hash, message_bytes))

    def take(self, answer: Ack | Blocks) -> bool:
        if not isinstance(answer, Blocks):
            raise _misunderstood()
        self._gathered.add(answer.pieces)
        if self._gathered.is_whole:
            self.ask.blocks.update(zip(self.partitions, self._gathered.blocks, strict=True))
        return self._gathered.is_whole

    def settle(self) -> None:
        self.ask.future.set_result(self.ask.blocks)


AnyAsk = Ask | LookUpAsk
AnyPart = AskPart | LookUpPart


def _misunderstood() -> InvalidRequest:
    return InvalidRequest("the service answered another question than it was asked; report this")
