"""Readers under leases, and what befalls them and their files.

Each function counts one failure in the story of a run.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from tests.history import Befell, Held, Released
from tests.simulation.story import Decision, Story
from tests.table_invariants import file_path


@dataclass(frozen=True, slots=True)
class Hold:
    """A reading under a lease, from one place in the history to another."""

    event: Held
    begun: int
    ended: int

    def lasts_at(self, place: int) -> bool:
        return self.begun < place < self.ended


def outlasted(story: Story) -> int:
    """Readings of which some file was replaced before they ended."""
    return sum(any(hold.lasts_at(one.place) for one in _replacing(story, hold)) for hold in _holds(story))


def of_older(story: Story) -> int:
    """Readings of a position some file of which had been replaced when they began."""
    return sum(any(one.place < hold.begun for one in _replacing(story, hold)) for hold in _holds(story))


def clean_beside(story: Story) -> int:
    """Cleans that went only so far as a reader allowed, or won while what it held had been replaced."""
    holds = [(hold, _replacing(story, hold)) for hold in _holds(story)]
    return sum(
        any(hold.lasts_at(clean.place) and any(one.place < clean.place for one in by) for hold, by in holds)
        for clean in story.cleans
    )


def dies(story: Story) -> int:
    return sum(
        hold.lasts_at(place) and process == hold.event.reader
        for hold in _holds(story)
        for place, process in story.befell("is killed")
    )


def _replacing(story: Story, hold: Hold) -> list[Decision]:
    """The commits that replaced some of its files."""
    files = set(hold.event.files)
    return [one for one in story.commits if files & {file_path(file) for file in one.entry["removed"]}]


def _holds(story: Story) -> Iterator[Hold]:
    begun: dict[str, tuple[int, Held]] = {}
    for place, event in enumerate(story.events):
        match event:
            case Held():
                begun[event.reader] = (place, event)
            case Released() if event.reader in begun:
                first, held = begun.pop(event.reader)
                yield Hold(held, first, place)
            case Befell() if event.what == "is killed" and event.process in begun:
                first, held = begun.pop(event.process)
                yield Hold(held, first, place + 1)
            case _:
                pass
