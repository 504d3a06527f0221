"""Servers of markers without a table, and those who ask them.

Each function counts one failure in the story of a run.
"""

from tests.history import Landed
from tests.simulation.story import Story


def _flights(story: Story) -> list[tuple[int, int, set[tuple[str, str]]]]:
    """Of each segment that landed: when it was sent, when it had landed, and what is in it."""
    return [
        (sent, story.landed[event.path][0][0], story.segments[event.path])
        for sent, event in story.sent
        if event.path in story.segments
    ]


def asked_in_flight(story: Story) -> int:
    return sum(
        any(sent < place < landed and (asked.instant, name) in markers for name in asked.names)
        for sent, landed, markers in _flights(story)
        for place, asked in story.asked_at
    )


def gave_up_in_flight(story: Story) -> int:
    return sum(
        any(sent < place < landed and (instant, name) in markers for name in names)
        for sent, landed, markers in _flights(story)
        for place, instant, names in story.gave_up
    )


def _claims(story: Story) -> dict[str, list[tuple[int, str]]]:
    """Instant to the claims of its incarnations: when, and by whom."""
    claims: dict[str, list[tuple[int, str]]] = {}
    for path, [(place, event), *_] in story.landed.items():
        if "/SERVER" in path:
            claims.setdefault(path.split("/")[-2], []).append((place, event.by))
    return claims


def taken_over(story: Story) -> int:
    return sum(len({by for _, by in claims}) > 1 for claims in _claims(story).values())


def two_servers(story: Story) -> int:
    """Segments that an earlier server put after a later one had claimed the instant."""
    return sum(
        any(landed[0][0] > place and landed[0][1].by in earlier for path, landed in _segments_of(story, instant))
        for instant, claims in _claims(story).items()
        for number, (place, by) in enumerate(sorted(claims))
        if (earlier := {other for _, other in sorted(claims)[:number]} - {by})
    )


def _segments_of(story: Story, instant: str) -> list[tuple[str, list[tuple[int, Landed]]]]:
    return [(path, story.landed[path]) for path in story.segments if f"/{instant}/" in path]
