"""Processes that died, were cancelled, stood still, or whose clock jumped.

Each function counts one failure in the story of a run.
"""

from collections.abc import Callable

from tests.simulation.plan import Plan
from tests.simulation.story import Story
from tests.simulation.world import LEASE


def befell(what: str, phase: str) -> Callable[[Story], int]:
    """Writers whom it befell in that phase of their job."""
    return lambda story: sum(
        story.phase(process, place) == phase for place, process in story.befell(what, who="writer")
    )


def ended_while_rolling_back(what: str) -> Callable[[Story], int]:
    """Of any process that is not a task."""
    return lambda story: sum(
        story.phase(process, place) == "in a rollback of another" for place, process in story.befell(what)
    )


def in_flush(what: str) -> Callable[[Story], int]:
    """Services whom it befell while a segment was on its way."""
    return lambda story: sum(
        any(
            sent < place and event.server == process and not story.has_landed(event.path, place)
            for sent, event in story.sent
        )
        for place, process in story.befell(what)
    )


def died_between_put_and_ack(story: Story) -> int:
    return sum(
        any(_is_unanswered(story, path, place) for path in story.segments if _was_put_by(story, path, process, place))
        for place, process in story.befell("is killed")
    )


def _was_put_by(story: Story, path: str, process: str, before: int) -> bool:
    return any(event.by == process and place < before for place, event in story.landed[path])


def _is_unanswered(story: Story, path: str, at: int) -> bool:
    """Whether somebody has asked for a marker of the segment, and waits then."""
    return any(
        story.answered.get(request, at) >= at
        and any((asked.instant, name) in story.segments[path] for name in asked.names)
        for request, asked in story.asked.items()
    )


def died_between_ack_and_data(story: Story) -> int:
    return sum(
        any(
            story.begun.get(path) == process and acked < place and not story.has_landed(path, place)
            for path, acked in story.acked.items()
        )
        for place, process in story.tasks("is killed")
    )


def failed_half_way(story: Story) -> int:
    writing = set(story.begun.values())
    return sum(process in writing for _, process in story.tasks("fails: InputFailed()"))


def second_success(story: Story) -> int:
    return sum(event.what.startswith("hears of a second success") for _, event in story.notes)


def success_of_the_dead(story: Story) -> int:
    return sum(event.what.startswith("hears of the success of") for _, event in story.notes)


def stood_still_beyond_its_lease(story: Story) -> int:
    return len(_long_stops(story))


def stood_still_and_was_ended(story: Story) -> int:
    ended = {event.writer for event in story.told if event.outcome == "RolledBack"}
    return sum(process in ended for process in _long_stops(story))


def _long_stops(story: Story) -> list[str]:
    """Writers that had an open instant and stood still for longer than their lease."""
    woken = story.befell("goes on", who="writer")
    stops = story.befell("is stopped", who="writer")
    return [
        process
        for stopped, process in stops
        for went_on, woke in woken
        if woke == process
        and story.events[went_on].at - story.events[stopped].at > LEASE.expiry_s
        and story.phase(process, stopped) in ("writing", "before its entry")
    ]


def clock_set_back(story: Story) -> int:
    assert isinstance(story.plan, Plan)
    set_back = {
        f"writer{number}"
        for number, writer in enumerate(story.plan.writers)
        if writer.mishap and writer.mishap.what == "clock jumps" and writer.mishap.for_s < 0
    }
    return sum(process in set_back for _, process in story.befell("'s clock jumps"))
