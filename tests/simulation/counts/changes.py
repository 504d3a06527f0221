"""Counts of writes by key, and of what keeps them from their commit.

Each function counts one failure in the history of a run.
"""

from collections.abc import Callable

from tests.simulation.history_index import Decision, HistoryIndex

REFUSALS = ("ConflictError", "InvalidRequest")

LATE, REPLACED, DRIFTED = "which another writer has put into", "wants to change rows of", "the input was not the same"
"""Parts of messages to writers by key."""


def _commits(index: HistoryIndex) -> list[Decision]:
    return [one for one in index.commits if one.entry["operation"] in ("upsert", "delete")]


def changed(index: HistoryIndex) -> int:
    return sum(len(one.entry["removed"]) for one in _commits(index))


def beside_added_rows(index: HistoryIndex) -> int:
    """Count writes by key that committed after another had added rows since their lookup."""
    return sum(
        any(mine.entry["base"] < one.position < mine.position and one.entry["added"] for one in index.commits)
        for mine in _commits(index)
    )


def refused(text: str) -> Callable[[HistoryIndex], int]:
    """Count writes that failed with such a message."""
    return lambda index: sum(event.outcome in REFUSALS and text in event.message for event in index.told)


def died_with_keys(index: HistoryIndex) -> int:
    """Count tasks that died while they stored keys or looked them up."""
    return sum("/keys" in process or "/look" in process for _, process in index.tasks("is killed"))
