"""What happened in a simulated run, in order: who asked, what landed, who was answered. ``invariants`` judges it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

E = TypeVar("E", bound="Event")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    at: float
    """Seconds on the simulated clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(Event):
    """A requester asked a server for markers."""

    request: int
    server: str
    instant: str
    names: tuple[str, ...]
    """Marker names as they stand in storage."""

    def __str__(self) -> str:
        return f"request {self.request} asks {self.server} for {', '.join(self.names)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Acked(Event):
    """The request was told that its markers survive a crash."""

    request: int
    answers: tuple[str, ...]
    """``created`` or ``existed``, one for each name."""

    def __str__(self) -> str:
        return f"request {self.request} is acked: {', '.join(self.answers)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused(Event):
    """The request ended with an error."""

    request: int
    error: str
    """The error's class."""
    message: str

    def __str__(self) -> str:
        return f"request {self.request} is refused: {self.error}: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class GaveUp(Event):
    """The requester stopped waiting of its own accord."""

    request: int

    def __str__(self) -> str:
        return f"request {self.request} gives up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent(Event):
    """A server sent an object to storage. It may or may not get there."""

    server: str
    path: str
    data: bytes

    def __str__(self) -> str:
        return f"{self.server} sends {self.path} {self.data!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed(Event):
    """From now on the object survives a crash."""

    path: str
    data: bytes
    by: str = "storage"
    """Who had sent it."""

    def __str__(self) -> str:
        return f"{self.by} puts {self.path} {_shown(self.data)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Strayed(Event):
    """A request to storage does not go as it should."""

    by: str
    verb: str
    path: str
    what: str
    for_s: float | None
    """How long it takes to land; None: it never does."""

    def __str__(self) -> str:
        lands = "never lands" if self.for_s is None else f"lands after {self.for_s:.3f} s"
        return f"{self.by}'s {self.verb} of {self.path}: {self.what}, {lands}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed(Event):
    """An object that was there is gone."""

    path: str
    by: str

    def __str__(self) -> str:
        return f"{self.by} deletes {self.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Began(Event):
    """A task has begun a data file, whose first byte may be sent any time."""

    path: str
    by: str

    def __str__(self) -> str:
        return f"{self.by} begins {self.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Based(Event):
    """A writer begins that goes by the table as it has read it before."""

    writer: str
    instant: str
    position: int
    """Of the log."""

    def __str__(self) -> str:
        return f"{self.writer} goes by position {self.position} with {self.instant}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told(Event):
    """A writer learnt how its write ended."""

    writer: str
    instant: str | None
    outcome: str
    """``committed``, or the class of the error."""
    message: str = ""

    def __str__(self) -> str:
        return f"{self.writer} is told of {self.instant}: {self.outcome} {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished(Event):
    """A writer's block has ended, with a commit of which nothing is pending."""

    writer: str
    instant: str

    def __str__(self) -> str:
        return f"{self.writer} has finished {self.instant}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Appended(Event):
    """A producer's append to a stream has returned."""

    stream: str
    producer: int
    sequence: int
    position: int
    """At which its rows are, as it returned."""

    def __str__(self) -> str:
        return f"append {self.sequence} of producer {self.producer} of {self.stream} is at position {self.position}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Read(Event):
    """A reader saw the table as of a position that it was given."""

    reader: str
    head_before: int
    """Entries of the log when it began."""
    position: int
    files: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.reader} reads {len(self.files)} files at position {self.position}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Held(Event):
    """A reader may count on these files from now on: it has a lease on their position."""

    reader: str
    position: int
    files: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.reader} holds {len(self.files)} files at position {self.position}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Released(Event):
    """The reader is about to give its lease up."""

    reader: str

    def __str__(self) -> str:
        return f"{self.reader} has read what it held"


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced(Event):
    """Somebody who keeps a view has read the log."""

    reader: str
    head_before: int
    """Entries of the log when it began."""
    position: int
    """The head, as it has read."""

    def __str__(self) -> str:
        return f"{self.reader} knows the table up to position {self.position}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewed(Event):
    """A view has told its keeper what a partition held at a position."""

    reader: str
    head: int
    """Of the view."""
    position: int
    partition: str
    files: tuple[str, ...]
    is_named: bool
    """The view tells the partition among those that held files."""

    def __str__(self) -> str:
        return f"{self.reader} is told of {len(self.files)} files in {self.partition} at position {self.position}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnedAway(Event):
    """A view does not answer for a position any more."""

    reader: str
    position: int

    def __str__(self) -> str:
        return f"{self.reader} is turned away from position {self.position}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded(Event):
    """A reader has read the markers of an instant."""

    reader: str
    instant: str
    events_before: int
    """Events of this history when it began to read."""
    names: frozenset[str]

    def __str__(self) -> str:
        return f"{self.reader} finds {len(self.names)} markers of {self.instant}: {', '.join(sorted(self.names))}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Befell(Event):
    """Something happened to a process."""

    process: str
    what: str

    def __str__(self) -> str:
        return f"{self.process}: {self.what}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Replaced(Event):
    """All of storage is as it was at an earlier event, or empty: the table has another life from now on."""

    copied: int
    """Events of this history when the copy was made; 0: nothing is there any more."""
    at_work: frozenset[str]
    """Processes that may have read what was there before."""

    def __str__(self) -> str:
        return "storage is put back to an older copy" if self.copied else "all of storage is removed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(Event):
    """A server takes no more markers from now on; ``error`` is the class of its refusals."""

    server: str
    error: str

    def __str__(self) -> str:
        return f"{self.server} ends: {self.error}"


class History:
    """Events in the order in which they happened. As text, one a line."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def record(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: type[E]) -> Iterator[E]:
        return (event for event in self.events if isinstance(event, kind))

    def before(self, last: Event) -> list[Event]:
        """The events up to that very one, without it."""
        place = next(place for place, event in enumerate(self.events) if event is last)
        return self.events[:place]

    def __repr__(self) -> str:
        return "\n".join(f"{event.at:9.4f}  {event}" for event in self.events) or "nothing happened"


def _shown(data: bytes) -> str:
    return f"{data!r}" if len(data) <= 80 else f"({len(data)} bytes)"
