"""Overwrites of a year beside overwrites of its months, and beside a year whose number begins as its own does.

Each function counts one failure in the story of a run.
"""

import re
from collections.abc import Iterator
from typing import Any

from tests.history import Told
from tests.simulation.plan import Plan
from tests.simulation.story import Story

_WINNER = re.compile(r"which instant (\d{17}) has overwritten")


def year_lost_to_a_part(story: Story) -> int:
    """Overwrites of all of a year that lost to one of some of its months."""
    return sum(_takes_a_year(story, told) and bool(scope["partitions"]) for told, scope in _lost(story))


def part_lost_to_a_year(story: Story) -> int:
    """Overwrites of something within a year that lost to one of all of it."""
    return sum(_names_a_part(story, told) and bool(scope["prefixes"]) for told, scope in _lost(story))


def year_beside_a_longer_one(story: Story) -> int:
    """Overwrites of all of a year, beside files of another one whose path begins with the same characters."""
    return sum(
        any(file[0].startswith(prefix) and not file[0].startswith(f"{prefix}/") for prefix in scope["prefixes"])
        for decision in story.commits
        if (scope := decision.entry["scope"])
        for file in story.files_at(decision.position - 1)
    )


def _lost(story: Story) -> Iterator[tuple[Told, dict[str, Any]]]:
    """Conflicts of named writers, and the scope of the overwrite that had come first."""
    for told in story.told:
        if told.outcome == "ConflictError" and (found := _WINNER.search(told.message)):
            scope = story.decisions[found[1]].entry["scope"]
            if scope is not None:
                yield told, scope


def _takes_a_year(story: Story, told: Told) -> bool:
    writer = _plan(story).writers[int(told.writer.removeprefix("writer"))]
    return writer.year is not None and not writer.dynamic


def _names_a_part(story: Story, told: Told) -> bool:
    writer = _plan(story).writers[int(told.writer.removeprefix("writer"))]
    return writer.month is not None or (writer.year is not None and writer.dynamic)


def _plan(story: Story) -> Plan:
    assert isinstance(story.plan, Plan)
    return story.plan
