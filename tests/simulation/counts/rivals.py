"""Counts of writes beside writes: conflicts, empty overwrites, reruns, and years beside their months."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from tests.history import Told
from tests.simulation.history_index import OPEN, Decision, HistoryIndex
from tests.simulation.plan import Plan


def ended(outcome: str) -> Callable[[HistoryIndex], int]:
    """Count writes that ended so for their writers."""
    return lambda index: sum(event.outcome == outcome for event in index.told)


def _beside_an_append(index: HistoryIndex, is_later: Callable[[Decision, Decision], bool]) -> int:
    """Overwrites since whose base an append has come that stays, for which ``is_later(overwrite, append)``."""
    return sum(
        any(
            overwrite.entry["base"] < append.position
            and is_later(overwrite, append)
            and any(_holds(overwrite.entry["scope"], file[0]) for file in append.entry["added"])
            for append in index.commits
            if append.entry["operation"] == "append"
        )
        for overwrite in index.commits
        if overwrite.entry["scope"]
    )


def _holds(scope: dict[str, Any], partition: str) -> bool:
    below = any(f"{partition}/".startswith(f"{prefix}/") for prefix in scope["prefixes"])
    return bool(scope["all"]) or partition in scope["partitions"] or below


def overwrite_beside_append(index: HistoryIndex) -> int:
    """Overwrites that committed after an append which they had not seen, and which stays."""
    return _beside_an_append(index, lambda overwrite, append: append.position < overwrite.position)


def overwrite_of_what_was_read(index: HistoryIndex) -> int:
    """Overwrites that went by what their writer had read, and beside it an append that came before they began."""
    return _beside_an_append(
        index, lambda overwrite, append: append.place < _reserved(index, overwrite.entry["instant"])
    )


def _reserved(index: HistoryIndex, instant: str) -> int:
    """When the instant was."""
    return index.landed[f"{OPEN}{instant}"][0][0] if f"{OPEN}{instant}" in index.landed else 0


def named_partition_emptied(index: HistoryIndex) -> int:
    """Overwrites by nothing of a partition that they name, and that held files."""
    return sum(
        not decision.entry["added"] and bool(decision.entry["removed"])
        for decision in index.commits
        if decision.entry["scope"] and (decision.entry["scope"]["partitions"] or decision.entry["scope"]["prefixes"])
    )


def run_again_for_nothing(index: HistoryIndex) -> int:
    """Reruns that found their write committed, and did nothing."""
    return sum(event.outcome == "committed" and event.writer not in index.instant_of for event in index.told)


def twins_met(index: HistoryIndex) -> int:
    """Reruns that had written, and found at their commit that another run had committed."""
    return sum(
        event.outcome == "committed" and index.instant_of.get(event.writer) not in (None, event.instant)
        for event in index.told
    )


def run_again_for_good(index: HistoryIndex) -> int:
    """Reruns that committed what their first run had not, beside it or after its end."""
    assert isinstance(index.plan, Plan)
    rerun = f"writer{len(index.plan.writers) - 1}"
    return sum(decision.entry["txn"] is not None and decision.by == rerun for decision in index.commits)


def files_expired(index: HistoryIndex) -> int:
    """Cleans that let files go which had been kept for readers."""
    return len(index.cleans)


def only_a_lost_attempt(index: HistoryIndex) -> int:
    """Partitions that held files, to which only lost attempts of a dynamic overwrite wrote: they stay as they were."""
    count = 0
    for decision in index.commits:
        scope, instant = decision.entry["scope"], decision.entry["instant"]
        if scope and not scope["all"] and not scope["prefixes"]:
            held = {file[0] for file in index.files_at(decision.position - 1)}
            touched = {path.rpartition("/")[0] for path in index.begun if path.endswith(f"{instant}.parquet")}
            count += len((touched & held) - set(scope["partitions"]))
    return count


def empty(*, dynamic: bool) -> Callable[[HistoryIndex], int]:
    """Overwrites of a table that held files, by nothing."""
    return lambda index: sum(
        not decision.entry["added"]
        and bool(scope := decision.entry["scope"])
        and scope["all"] != dynamic
        and not scope["partitions"]
        and not scope["prefixes"]
        and bool(index.files_at(decision.position - 1))
        for decision in index.commits
    )


def beside_a_job(what: str, *, who: str = "") -> Callable[[HistoryIndex], int]:
    """Count rounds of visitors while an instant is open."""
    return lambda index: sum(
        any(index.is_open(instant, place) for instant in index.instant_of.values())
        for place, _ in index.process_events(f"does its round: {what}", who=who)
    )


_WINNER = re.compile(r"which instant (\d{17}) has overwritten")


def year_lost_to_a_part(index: HistoryIndex) -> int:
    """Overwrites of all of a year that lost to one of some of its months."""
    return sum(_takes_a_year(index, told) and bool(scope["partitions"]) for told, scope in _lost(index))


def part_lost_to_a_year(index: HistoryIndex) -> int:
    """Overwrites of something within a year that lost to one of all of it."""
    return sum(_names_a_part(index, told) and bool(scope["prefixes"]) for told, scope in _lost(index))


def year_beside_longer_one(index: HistoryIndex) -> int:
    """Overwrites of all of a year, beside files of another year whose path starts with the same characters."""
    return sum(
        any(file[0].startswith(prefix) and not file[0].startswith(f"{prefix}/") for prefix in scope["prefixes"])
        for decision in index.commits
        if (scope := decision.entry["scope"])
        for file in index.files_at(decision.position - 1)
    )


def _lost(index: HistoryIndex) -> Iterator[tuple[Told, dict[str, Any]]]:
    """Conflicts of named writers, and the scope of the overwrite that had come first."""
    for told in index.told:
        if told.outcome == "ConflictError" and (found := _WINNER.search(told.message)):
            scope = index.decisions[found[1]].entry["scope"]
            if scope is not None:
                yield told, scope


def _takes_a_year(index: HistoryIndex, told: Told) -> bool:
    writer = _plan(index).writers[int(told.writer.removeprefix("writer"))]
    return writer.year is not None and not writer.dynamic


def _names_a_part(index: HistoryIndex, told: Told) -> bool:
    writer = _plan(index).writers[int(told.writer.removeprefix("writer"))]
    return writer.month is not None or (writer.year is not None and writer.dynamic)


def _plan(index: HistoryIndex) -> Plan:
    assert isinstance(index.plan, Plan)
    return index.plan
