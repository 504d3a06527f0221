"""Grouping of waiting marker requests of one kind into one message, up to the service's read limit.

An ask that is joined with others is answered with them. Where such a request is refused for what may be the fault of
one of them, they are asked again in halves: whoever is not at fault has its ack after a few rounds. Sans-I/O.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from tallymark.backends.errors import TallymarkError
from tallymark.engine.errors import InvalidRequest, Overloaded, ServiceUnavailable
from tallymark.engine.rpc.ask import AnyPart, AskPart, LookUpPart
from tallymark.engine.rpc.messages import PATH_COUNT_MAX, CreateMarkers, LookUp, Request, path_bytes, room_for_paths

JOINED_BYTES_MAX = 65536
"""Of a joined request, some 500 names: what a service reads at once. More would save nothing, and hold up others."""


@dataclass(frozen=True, slots=True)
class Unsent:
    part: AnyPart
    due_at: float = float("-inf")
    joined_max: int = PATH_COUNT_MAX
    """Parts at most that share a request with it."""


@dataclass(slots=True)
class _Run:
    room: int
    parts: list[AnyPart] = field(default_factory=list)
    paths: int = 0
    joined_max: int = PATH_COUNT_MAX

    def takes(self, unsent: Unsent, size: int, paths: int) -> bool:
        joined_max = min(self.joined_max, unsent.joined_max)
        return size <= self.room and self.paths + paths <= PATH_COUNT_MAX and len(self.parts) < joined_max

    def add(self, unsent: Unsent, size: int, paths: int) -> None:
        self.parts.append(unsent.part)
        self.room -= size
        self.paths += paths
        self.joined_max = min(self.joined_max, unsent.joined_max)


def joined(due: Iterable[Unsent], message_bytes: int) -> Iterator[list[AnyPart]]:
    """The parts of each request, in about the order in which they came. One that stands alone may be too large."""
    runs: dict[str, _Run] = {}
    for unsent in due:
        part = unsent.part
        if isinstance(part, LookUpPart):
            yield [part]
            continue
        io, size, paths = part.ask.io, sum(map(path_bytes, part.paths)), len(part.paths)
        run = runs.get(io)
        if run is None or not run.takes(unsent, size, paths):
            if run is not None:
                yield run.parts
            run = runs[io] = _Run(room_for_paths(io, min(message_bytes, JOINED_BYTES_MAX)))
        run.add(unsent, size, paths)
    for run in runs.values():
        yield run.parts


def request_of(request_id: int, parts: list[AnyPart]) -> Request:
    """Return the request for parts that go together."""
    first = parts[0]
    if isinstance(first, LookUpPart):
        return LookUp(request_id, first.ask.position, first.ask.hash, first.partitions)
    paths = chain.from_iterable(part.paths for part in parts if isinstance(part, AskPart))
    return CreateMarkers(request_id, tuple(paths), first.ask.io)


def may_be_one_s_fault(error: TallymarkError) -> bool:
    """Return whether a joined request may have been refused for one of its parts: a bad name, or too many of them."""
    return isinstance(error, InvalidRequest | Overloaded | ServiceUnavailable)
