"""What must hold in every run, whatever was late, lost or impatient. Each check prints the history that breaks it."""

import re
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping

from tests.history import Acked, Asked, Ended, GaveUp, History, Landed, Refused, Sent

Marker = tuple[str, str]
"""An instant and a marker name, both as they stand in storage."""

_BELOW_MARKERS = re.compile(r"\.hoodie/\.temp/([^/]+)/(.+)")
_SEGMENT = re.compile(r"MARKERS([0-9]+)")
_NUMBER_END = 2**31
"""Hudi's server takes a segment's number for a signed 32-bit integer."""


def markers_in(storage: Mapping[str, bytes]) -> set[Marker]:
    """The markers that a reader of the Hudi format finds: every line of every MARKERS<n>, and every direct marker."""
    return {marker for path, data in storage.items() for marker in markers_of(path, data)}


def every_ack_is_durable(history: History, storage: Mapping[str, bytes]) -> None:
    """An acked marker had landed before its ack, and storage still holds it."""
    asked = {event.request: event for event in history.of(Asked)}
    in_the_end = markers_in(storage)
    durable: set[Marker] = set()
    for event in history.events:
        if isinstance(event, Landed):
            durable |= set(markers_of(event.path, event.data))
        if isinstance(event, Acked):
            names = {(asked[event.request].instant, name) for name in asked[event.request].names}
            _hold(not names - durable, f"acked before it was durable: {names - durable} ({event})", history)
            _hold(not names - in_the_end, f"acked and lost: {names - in_the_end} ({event})", history)


def every_request_is_answered(history: History, *, within_s: float = float("inf")) -> None:
    """No request is left waiting: it was acked, refused or given up, once, and in time."""
    ends = Counter(event.request for event in history.events if isinstance(event, Acked | Refused | GaveUp))
    asked = {event.request: event for event in history.of(Asked)}
    _hold(not asked.keys() - ends.keys(), f"still waiting: requests {sorted(asked.keys() - ends.keys())}", history)
    for event in history.events:
        if isinstance(event, Acked | Refused | GaveUp):
            _hold(ends[event.request] == 1, f"answered {ends[event.request]} times: {event}", history)
            waited_s = event.at - asked[event.request].at
            _hold(waited_s <= within_s, f"answered after {waited_s} s: {event}", history)


def created_at_most_once(history: History) -> None:
    """A server tells one request only that it created a marker, and a request once; all others, that it existed."""
    asked = {event.request: event for event in history.of(Asked)}
    created: Counter[tuple[str, str, str]] = Counter()
    for event in history.of(Acked):
        request = asked[event.request]
        _hold(len(event.answers) == len(request.names), f"not one answer a name: {event}", history)
        for name, answer in zip(request.names, event.answers, strict=True):
            created[request.server, request.instant, name] += answer == "created"
    twice = [marker for marker, count in created.items() if count > 1]
    _hold(not twice, f"created twice: {twice}", history)


def segment_numbers_are_unique(history: History) -> None:
    """A segment's number is used by one server, for one content, and is one that Hudi can read."""
    first: dict[str, Sent] = {}
    for event in history.of(Sent):
        number = _number_of(event.path)
        if number is None:
            continue
        _hold(number < _NUMBER_END, f"Hudi cannot read this number: {event}", history)
        earlier = first.setdefault(event.path, event)
        same = (event.server, event.data) == (earlier.server, earlier.data)
        _hold(same, f"one number used twice: {earlier} / {event}", history)


def refused_requests_were_not_acked(history: History) -> None:
    """Nobody gets both answers, and no refusal claims an end that had not come."""
    acked = {event.request for event in history.of(Acked)}
    asked = {event.request: event for event in history.of(Asked)}
    for event in history.of(Refused):
        _hold(event.request not in acked, f"acked and refused: request {event.request}", history)
        if event.error in ("Sealed", "Closed", "RolledBack"):
            server = asked[event.request].server
            ends = {(end.server, end.error) for end in history.before(event) if isinstance(end, Ended)}
            _hold((server, event.error) in ends, f"refused without cause: {event}", history)


def no_ack_after_the_end(history: History) -> None:
    """Once a server has sealed the instant, was closed, or could know of a rollback, it acks nothing."""
    asked = {event.request: event for event in history.of(Asked)}
    ended: set[str] = set()
    for event in history.events:
        if isinstance(event, Ended):
            ended.add(event.server)
        if isinstance(event, Acked):
            _hold(asked[event.request].server not in ended, f"acked after the end: {event}", history)


def every_marker_invariant(history: History, storage: Mapping[str, bytes]) -> None:
    every_ack_is_durable(history, storage)
    every_request_is_answered(history)
    created_at_most_once(history)
    segment_numbers_are_unique(history)
    refused_requests_were_not_acked(history)
    no_ack_after_the_end(history)


def markers_of(path: str, data: bytes) -> Iterable[Marker]:
    below = _BELOW_MARKERS.fullmatch(path)
    if below and _number_of(path) is not None:
        head, _, body = data.rpartition(b"\n")[0].partition(b"\n") if data.startswith(b"//") else (b"", b"", data[:-1])
        lines = body.decode("utf-8").split("\n")
        assert head in (b"", b"//%08x %d" % (zlib.crc32(body + b"\n"), len(lines))), path
        return [(below[1], line) for line in lines]
    if below and ".marker." in below[2]:
        return [(below[1], below[2])]
    return []


def _number_of(path: str) -> int | None:
    below = _BELOW_MARKERS.fullmatch(path)
    segment = _SEGMENT.fullmatch(below[2]) if below else None
    return int(segment[1]) if segment else None


def _hold(holds: bool, otherwise: str, history: History) -> None:
    assert holds, f"{otherwise}\n{history!r}"
