"""Writes beside writes: conflicts, empty overwrites, and who comes by meanwhile.

Each function counts one failure in the story of a run.
"""

from collections.abc import Callable

from tests.simulation.story import Story


def conflict(story: Story) -> int:
    return sum(event.outcome == "ConflictError" for event in story.told)


def outcome_unknown(story: Story) -> int:
    return sum(event.outcome == "CommitUnknown" for event in story.told)


def overwrite_beside_append(story: Story) -> int:
    """Overwrites that committed after an append which they had not seen, and which stays."""
    return sum(
        any(
            overwrite.entry["base"] < append.position < overwrite.position
            and any(_holds(overwrite.entry["scope"], file[0]) for file in append.entry["added"])
            for append in story.commits
            if append.entry["operation"] == "append"
        )
        for overwrite in story.commits
        if overwrite.entry["scope"]
    )


def _holds(scope: dict[str, object], partition: str) -> bool:
    return bool(scope["all"]) or partition in scope["partitions"]  # type: ignore[operator]


def only_a_lost_attempt(story: Story) -> int:
    """Partitions that held files, to which only lost attempts of a dynamic overwrite wrote: they stay as they were."""
    count = 0
    for decision in story.commits:
        scope, instant = decision.entry["scope"], decision.entry["instant"]
        if scope and not scope["all"]:
            held = {file[0] for file in story.files_at(decision.position - 1)}
            touched = {path.rpartition("/")[0] for path in story.begun if path.endswith(f"{instant}.parquet")}
            count += len((touched & held) - set(scope["partitions"]))
    return count


def empty(*, dynamic: bool) -> Callable[[Story], int]:
    """Overwrites of a table that held files, by nothing."""
    return lambda story: sum(
        not decision.entry["added"]
        and bool(scope := decision.entry["scope"])
        and scope["all"] != dynamic
        and bool(story.files_at(decision.position - 1))
        for decision in story.commits
    )


def clean_beside_a_job(story: Story) -> int:
    return sum(
        any(story.is_open(instant, place) for instant in story.instant_of.values())
        for place, process in story.befell("does its round: clean")
        if process.startswith("visitor")
    )


def read_beside_a_job(story: Story) -> int:
    return sum(
        any(story.is_open(instant, place) for instant in story.instant_of.values())
        for place, _ in story.befell("does its round: read")
    )
