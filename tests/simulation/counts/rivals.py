"""Writes beside writes: conflicts, empty overwrites, and who comes by meanwhile.

Each function counts one failure in the story of a run.
"""

from collections.abc import Callable
from typing import Any

from tests.simulation.plan import Plan
from tests.simulation.story import OPEN, Story


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


def _holds(scope: dict[str, Any], partition: str) -> bool:
    below = any(f"{partition}/".startswith(f"{prefix}/") for prefix in scope["prefixes"])
    return bool(scope["all"]) or partition in scope["partitions"] or below


def overwrite_of_what_was_read(story: Story) -> int:
    """Overwrites that went by what their writer had read, and beside it an append that came before they began."""
    return sum(
        any(
            overwrite.entry["base"] < append.position
            and append.place < _reserved(story, overwrite.entry["instant"])
            and any(_holds(overwrite.entry["scope"], file[0]) for file in append.entry["added"])
            for append in story.commits
            if append.entry["operation"] == "append"
        )
        for overwrite in story.commits
        if overwrite.entry["scope"]
    )


def _reserved(story: Story, instant: str) -> int:
    """When the instant was."""
    return story.landed[f"{OPEN}{instant}"][0][0]


def named_partition_emptied(story: Story) -> int:
    """Overwrites by nothing of a partition that they name, and that held files."""
    return sum(
        not decision.entry["added"] and bool(decision.entry["removed"])
        for decision in story.commits
        if decision.entry["scope"] and (decision.entry["scope"]["partitions"] or decision.entry["scope"]["prefixes"])
    )


def run_again_for_nothing(story: Story) -> int:
    """Reruns that found their write committed, and did nothing."""
    return sum(event.outcome == "committed" and event.writer not in story.instant_of for event in story.told)


def twins_met(story: Story) -> int:
    """Reruns that had written, and found at their commit that another run had committed."""
    return sum(
        event.outcome == "committed" and story.instant_of.get(event.writer) not in (None, event.instant)
        for event in story.told
    )


def run_again_for_good(story: Story) -> int:
    """Reruns that committed what their first run had not, beside it or after its end."""
    assert isinstance(story.plan, Plan)
    rerun = f"writer{len(story.plan.writers) - 1}"
    return sum(decision.entry["txn"] is not None and decision.by == rerun for decision in story.commits)


def let_go(story: Story) -> int:
    """Cleans that let files go which had been kept for readers."""
    return len(story.cleans)


def only_a_lost_attempt(story: Story) -> int:
    """Partitions that held files, to which only lost attempts of a dynamic overwrite wrote: they stay as they were."""
    count = 0
    for decision in story.commits:
        scope, instant = decision.entry["scope"], decision.entry["instant"]
        if scope and not scope["all"] and not scope["prefixes"]:
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
        and not scope["partitions"]
        and not scope["prefixes"]
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
