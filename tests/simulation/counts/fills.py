"""Appends that fill small files, those that lose one, and what befalls whoever does either.

Each function counts one failure in the story of a run.
"""

from collections.abc import Callable

from tests.simulation.story import Decision, Story
from tests.table_invariants import file_path


def fill(story: Story) -> int:
    return sum(len(one.entry["removed"]) for one in story.commits if one.entry["operation"] == "append")


def lost_to(operation: str) -> Callable[[Story], int]:
    """Files that were cut anew and committed, since a commit of that kind had replaced a small file there."""

    def count(story: Story) -> int:
        lost = 0
        for decision in story.commits:
            rivals = [one for one in _between(story, decision) if one.entry["operation"] == operation]
            replaced = {file[0] for one in rivals for file in one.entry["removed"]}
            cut = _cut_anew(story, decision.by, len(story.events)) & {
                file_path(file) for file in decision.entry["added"]
            }
            lost += sum(path.rpartition("/")[0] in replaced for path in cut)
        return lost

    return count


def _between(story: Story, decision: Decision) -> list[Decision]:
    """What was committed since it began."""
    return [one for one in story.commits if decision.entry["base"] < one.position < decision.position]


def _cut_anew(story: Story, process: str, before: int) -> set[str]:
    """What a driver itself had marked by then."""
    return {
        name.partition(".marker.")[0]
        for place, asked in story.asked_at
        if place < before and asked.server == process
        for name in asked.names
    }


def befell_while_cutting(what: str) -> Callable[[Story], int]:
    """Writers whom it befell between the first marker for a file cut anew and their instant's end."""
    return lambda story: sum(
        bool(_cut_anew(story, process, place)) and story.phase(process, place) == "before its entry"
        for place, process in story.befell(what)
    )


def ended_while_cutting(story: Story) -> int:
    """Writers that another rolled back after they had marked a file to be cut anew."""
    writer_of = {instant: writer for writer, instant in story.instant_of.items()}
    return sum(
        bool(_cut_anew(story, writer_of[one.entry["instant"]], one.place))
        for one in story.rollbacks
        if one.entry["instant"] in writer_of and one.by != writer_of[one.entry["instant"]]
    )


def unclear_while_cutting(story: Story) -> int:
    return sum(
        event.verb == "data" and "/" not in event.by and event.what in ("lost answer", "late landing", "lost request")
        for event in story.strayed
    )


def overwrite_lost_to_a_fill(story: Story) -> int:
    """Overwrites that are refused since an append has filled what they replace."""
    appends = [one.entry["instant"] for one in story.commits if one.entry["operation"] == "append"]
    return sum(
        event.outcome == "ConflictError" and any(f" {instant} " in event.message for instant in appends)
        for event in story.told
    )


def died_with_old_rows(story: Story) -> int:
    """Tasks that died between the marker for a small file's rows and the file that was to hold them."""
    return sum(
        any(path not in story.landed for path in _merges(story, process, place))
        for place, process in story.tasks("is killed")
    )


def zombie_with_old_rows(story: Story) -> int:
    """Tasks that fill, and found their way closed, or brought their file to it after their instant was decided."""
    late = {
        events[0][1].by: place
        for path, events in story.landed.items()
        if (decision := story.decisions.get(path[:-8].rpartition("_")[2])) is not None
        and (place := events[0][0]) > decision.place
        and events[0][1].by == story.begun.get(path)
    }
    return sum(
        bool(_merges(story, process, place))
        for process, place in (story.publications_refused() | late).items()
        if "/" in process
    )


def _merges(story: Story, process: str, before: int) -> set[str]:
    """The files of old rows and new ones that a task had marked by then."""
    return {
        name.partition(".marker.")[0]
        for place, asked in story.asked_at
        if place < before and asked.server == process
        for name in asked.names
        if name.endswith(".MERGE")
    }
