"""Counts of requests to storage and to servers that did not go as they should."""

from collections.abc import Callable

from tests.history import Landed
from tests.simulation.history_index import HistoryIndex

MARKERS = ".hoodie/.temp/"
STUCK_S = 10.0
"""A hundred times what a put usually takes in the slowest of weathers, at least."""


def strayed(verb: str, below: str, *what: str) -> Callable[[HistoryIndex], int]:
    """Requests of that kind, below that folder, that did not go as they should."""

    def count(index: HistoryIndex) -> int:
        return sum(
            event.verb == verb and event.path.startswith(below) and event.what in what for event in index.strayed
        )

    return count


def counted(name: str) -> Callable[[HistoryIndex], int]:
    return lambda index: index.counts[name]


def data_put_unclear(index: HistoryIndex) -> int:
    return sum(event.verb == "data" and event.what in ("lost answer", "late landing") for event in index.strayed)


def after_a_delete(what: str) -> Callable[[HistoryIndex], int]:
    """Count puts that strayed in this way, and landed after a delete of their name."""

    def count(index: HistoryIndex) -> int:
        late = [event for event in index.strayed if event.verb in ("put", "data") and event.what == what]
        return sum(
            any(place < landing for place, removed in index.removed.get(event.path, ()) if removed.at > event.at)
            for event in late
            for landing, landed in index.landed.get(event.path, ())
            if landed.at == event.at + (event.for_s or 0.0)
        )

    return count


def deleted_once_more(index: HistoryIndex) -> int:
    return sum(event.verb.startswith("delete") and event.what == "lands once more" for event in index.strayed)


def stuck(*, itself: bool) -> Callable[[HistoryIndex], int]:
    """Segments that took long, while the same service brought others home, or a repeat of the same."""

    def count(index: HistoryIndex) -> int:
        slow = [event for event in index.strayed if "/MARKERS" in event.path and (event.for_s or 0.0) > STUCK_S]
        return sum(
            any(
                event.at < landed.at < event.at + (event.for_s or 0.0)
                for path in index.segments
                for _, landed in index.landed[path]
                if landed.by == event.by and (path == event.path) == itself
            )
            for event in slow
        )

    return count


def flush_failed(index: HistoryIndex) -> int:
    return sum(event.error == "FlushFailed" for _, event in index.refused)


def _flights(index: HistoryIndex) -> list[tuple[int, int, set[tuple[str, str]]]]:
    """Of each segment that landed: when it was sent, when it had landed, and what is in it."""
    return [
        (sent, index.landed[event.path][0][0], index.segments[event.path])
        for sent, event in index.sent
        if event.path in index.segments
    ]


def requested_in_flight(index: HistoryIndex) -> int:
    return sum(
        any(sent < place < landed and (asked.instant, name) in markers for name in asked.names)
        for sent, landed, markers in _flights(index)
        for place, asked in index.asked_at
    )


def gave_up_in_flight(index: HistoryIndex) -> int:
    return sum(
        any(sent < place < landed and (instant, name) in markers for name in names)
        for sent, landed, markers in _flights(index)
        for place, instant, names in index.gave_up
    )


def _claims(index: HistoryIndex) -> dict[str, list[tuple[int, str]]]:
    """Instant to the claims of its incarnations: when, and by whom."""
    claims: dict[str, list[tuple[int, str]]] = {}
    for path, [(place, event), *_] in index.landed.items():
        if "/SERVER" in path:
            claims.setdefault(path.split("/")[-2], []).append((place, event.by))
    return claims


def taken_over(index: HistoryIndex) -> int:
    return sum(len({by for _, by in claims}) > 1 for claims in _claims(index).values())


def two_servers(index: HistoryIndex) -> int:
    """Segments that an earlier server put after a later one had claimed the instant."""
    return sum(
        any(landed[0][0] > place and landed[0][1].by in earlier for path, landed in _segments_of(index, instant))
        for instant, claims in _claims(index).items()
        for number, (place, by) in enumerate(sorted(claims))
        if (earlier := {other for _, other in sorted(claims)[:number]} - {by})
    )


def _segments_of(index: HistoryIndex, instant: str) -> list[tuple[str, list[tuple[int, Landed]]]]:
    return [(path, index.landed[path]) for path in index.segments if f"/{instant}/" in path]
