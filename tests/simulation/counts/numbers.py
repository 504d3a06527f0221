"""The numbers under which writers begin, and the flag of direct markers: by both nothing need be listed.

Each function counts one failure, or its absence, in the story of a run.
"""

from collections.abc import Iterator

import msgpack

from tests.simulation.story import BEGUN, OPEN, SEAL, Story


def nobody_met(story: Story) -> int:
    """Commits of writers that found all before them over."""
    return sum(bool(decision.entry["begun"]) and not decision.entry["unfinished"] for decision in story.commits)


def another_met(story: Story) -> int:
    """Commits of writers that found others which were not over."""
    return sum(any(decision.entry["unfinished"]) for decision in story.commits)


def died_with_a_number_alone(story: Story) -> int:
    """Writers that were killed with a number and no instant."""
    return sum(
        not any(event.by == by for _, event in story.landed.get(OPEN + instant, ()))
        for _, by, instant, _ in _numbers(story)
        if any(process == by for _, process in story.befell("is killed"))
    )


def passed(story: Story) -> int:
    """Objects of numbers that landed when an entry told one as great."""
    told = [(decision.place, decision.entry["begun"]) for decision in story.decisions.values()]
    return sum(any(at < place and begun >= number for at, begun in told) for place, _, _, number in _numbers(story))


def given_up(story: Story) -> int:
    """Numbers whose writers went on with others."""
    numbers = list(_numbers(story))
    return sum(
        story.instant_of.get(by) not in (None, instant)
        and any(again > number and other == story.instant_of[by] for _, _, other, again in numbers)
        and (instant not in story.decisions or story.decisions[instant].entry["begun"] != number)
        for _, by, instant, number in numbers
    )


def flag_too_late(story: Story) -> int:
    """Flags of direct markers that landed after their job, or who has ended it, had put its seal."""
    flags = (path for path in story.landed if path.endswith("/DIRECT"))
    return sum(story.has_landed(SEAL + path.split("/")[2], place) for path in flags for place, _ in story.landed[path])


def _numbers(story: Story) -> Iterator[tuple[int, str, str, int]]:
    """Where each landed, whose it is, its instant, and the number itself."""
    for path, events in story.landed.items():
        if path.startswith(BEGUN):
            for place, event in events:
                yield place, event.by, msgpack.unpackb(event.data)["instant"], int(path.removeprefix(BEGUN))
