"""Jobs, their tasks and zombies, and how they came to their end.

Each function counts one failure in the story of a run.
"""

from collections.abc import Callable

from tests.simulation.counts.requests import MARKERS
from tests.simulation.plan import Plan
from tests.simulation.story import BEAT, OPEN, Story
from tests.table_invariants import file_path


def fell_back(story: Story) -> int:
    """Direct markers of jobs that have a service."""
    assert isinstance(story.plan, Plan)
    served = {
        story.instant_of.get(f"writer{number}")
        for number, writer in enumerate(story.plan.writers)
        if writer.kind == "batched"
    }
    return sum(".marker." in path and path.split("/")[2] in served for path in story.landed if path.startswith(MARKERS))


def zombie_fenced(story: Story) -> int:
    return 0 if story.plan.has_staging else len(story.publications_refused())


def zombie_without_staging(story: Story) -> int:
    return len(story.publications_refused()) if story.plan.has_staging else 0


def zombie_without_marker(story: Story) -> int:
    return sum(
        event.error in ("Sealed", "RolledBack") and story.asked[event.request].instant in story.decisions
        for _, event in story.refused
    )


def zombie_landed(story: Story) -> int:
    """Files that landed after their instant's rollback had been decided."""
    return sum(
        landed[0][0] > decision.place
        for decision in story.rollbacks
        for path, landed in story.landed.items()
        if path.endswith(f"{decision.entry['instant']}.parquet") and landed[0][1].by == story.begun.get(path)
    )


def same_instant(story: Story) -> int:
    """Instants that more than one writer has beaten for before they were reserved."""
    beats = (events for path, events in story.landed.items() if path.startswith(BEAT) and "probe" not in path)
    return sum(len({event.by for _, event in events}) > 1 for events in beats)


def instant_given_up(story: Story) -> int:
    """Reservations whose own writer dropped them, since the log held a later instant."""
    return sum(
        path.removeprefix(OPEN) not in story.decisions and events[0][1].by == removed[0][1].by
        for path, events in story.landed.items()
        if path.startswith(OPEN) and (removed := story.removed.get(path))
    )


def unprojected(story: Story) -> int:
    """Writers that died with their entry in the log and their commit not yet on the Hudi timeline."""
    return sum(
        story.phase(process, place) == "after its entry" and not _is_projected(story, story.instant_of[process], place)
        for place, process in story.befell("is killed", who="writer")
    )


def _is_projected(story: Story, instant: str, at: int) -> bool:
    return any(story.has_landed(f".hoodie/{instant}.{action}", at) for action in ("commit", "replacecommit"))


def died_amid_deletes(story: Story) -> int:
    """Writers that had deleted some of what they replaced when they died, and others the rest."""
    count = 0
    for place, process in story.befell("is killed", who="writer"):
        decision = story.decisions.get(story.instant_of.get(process, ""))
        if decision is not None and decision.place < place and decision.entry["kind"] == "commit":
            removals = [story.removed.get(file_path(file)) for file in decision.entry["removed"]]
            by_itself = [removal[0][1].by == process for removal in removals if removal]
            count += any(by_itself) and not all(by_itself)
    return count


def ended_by_another(kind: str) -> Callable[[Story], int]:
    """Commits or rollbacks that one process decided and another one brought to their end."""

    def count(story: Story) -> int:
        decisions = story.commits if kind == "commit" else story.rollbacks
        removals = [(one, story.removed.get(OPEN + one.entry["instant"])) for one in decisions]
        return sum(removed[0][1].by != one.by for one, removed in removals if removed)

    return count


def living_ended_by_name(story: Story) -> int:
    return sum(
        decision.by.startswith("visitor") and not _has_died(story, decision.entry["instant"], decision.place)
        for decision in story.rollbacks
    )


def _has_died(story: Story, instant: str, before: int) -> bool:
    writer = next((writer for writer, its in story.instant_of.items() if its == instant), None)
    return any(process == writer and place < before for place, process in story.befell("is killed"))
