"""Requests to storage, and between processes, that did not go as they should.

Each function counts one failure in the story of a run.
"""

from collections.abc import Callable

from tests.simulation.story import Story

MARKERS = ".hoodie/.temp/"
STUCK_S = 10.0
"""A hundred times what a put usually takes in the slowest of weathers, at least."""


def strayed(verb: str, below: str, *what: str) -> Callable[[Story], int]:
    """Requests of that kind, below that folder, that did not go as they should."""

    def count(story: Story) -> int:
        return sum(
            event.verb == verb and event.path.startswith(below) and event.what in what for event in story.strayed
        )

    return count


def counted(name: str) -> Callable[[Story], int]:
    return lambda story: story.counts[name]


def data_put_unclear(story: Story) -> int:
    return sum(event.verb == "data" and event.what in ("lost answer", "late landing") for event in story.strayed)


def after_a_delete(what: str) -> Callable[[Story], int]:
    """Puts that strayed so, and landed where a delete had been meanwhile."""

    def count(story: Story) -> int:
        late = [event for event in story.strayed if event.verb in ("put", "data") and event.what == what]
        return sum(
            any(place < landing for place, removed in story.removed.get(event.path, ()) if removed.at > event.at)
            for event in late
            for landing, landed in story.landed.get(event.path, ())
            if landed.at == event.at + (event.for_s or 0.0)
        )

    return count


def deleted_once_more(story: Story) -> int:
    return sum(event.verb.startswith("delete") and event.what == "lands once more" for event in story.strayed)


def stuck(*, itself: bool) -> Callable[[Story], int]:
    """Segments that took long, while the same service brought others home, or a repeat of the same."""

    def count(story: Story) -> int:
        slow = [event for event in story.strayed if "/MARKERS" in event.path and (event.for_s or 0.0) > STUCK_S]
        return sum(
            any(
                event.at < landed.at < event.at + (event.for_s or 0.0)
                for path in story.segments
                for _, landed in story.landed[path]
                if landed.by == event.by and (path == event.path) == itself
            )
            for event in slow
        )

    return count


def flush_failed(story: Story) -> int:
    return sum(event.error == "FlushFailed" for _, event in story.refused)
