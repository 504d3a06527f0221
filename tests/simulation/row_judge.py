"""That the table holds the rows of its committed writers, each once, and no others."""

import io
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pyarrow.parquet as pq

from tests.history import Befell, Landed
from tests.simulation.plan import AttemptPlan, TaskPlan
from tests.simulation.rows import ASTRAY, ROWS, Row, first_flight, partition_of
from tests.simulation.world import Outcome
from tests.table_invariants import decisions, file_path, holds, log_entries


def rows_are_those_of_committed_writers(outcome: Outcome) -> None:
    """Each commit adds the rows of its writer, of one attempt a task, once; the rows that it removes it holds once
    more, or they are what its overwrite replaces: all that its base held there."""
    files = _rows_of_files(outcome)
    writer_of = _writers(outcome)
    counts = {entry["nonce"] for entry in decisions(outcome.swept).values() if entry["kind"] == "commit"}
    state: Counter[Row] = Counter()
    states = [state]
    for position, entry in enumerate(log_entries(outcome.swept), start=1):
        if entry["nonce"] in counts:
            writer = writer_of[entry["instant"]]
            added, removed = _rows(files, entry["added"]), _rows(files, entry["removed"])
            is_mine = partial(_is_of, writer)
            mine = Counter({row: count for row, count in added.items() if is_mine(row)})
            _one_attempt_a_task(mine, writer, outcome)
            rewritten, replaced = added - mine, _replaced(entry, states)
            assert rewritten + replaced == removed, (
                f"entry {position} of {writer} lets go {sorted(removed.items())}, of which it holds "
                f"{sorted(rewritten.items())} and replaces {sorted(replaced.items())}"
            )
            assert removed <= state, f"entry {position} of {writer} lets go rows twice"
            state = state - removed + added
        states.append(state)
    doubled = [row for row, count in state.items() if count > 1]
    assert not doubled, f"rows stand in the table twice: {doubled}"


def _replaced(entry: Mapping[str, Any], states: list[Counter[Row]]) -> Counter[Row]:
    """The rows that an overwrite has seen in what it replaces."""
    if entry["scope"] is None:
        return Counter()
    return Counter({row: count for row, count in states[entry["base"]].items() if holds(entry["scope"], row[1])})


def _one_attempt_a_task(rows: Counter[Row], writer: str, outcome: Outcome) -> None:
    left = rows
    for task, plan in enumerate(outcome.tasks[writer]):
        whole = [_written(writer, task, number, plan, each, outcome) for number, each in enumerate(plan.attempts)]
        found = [one for one in whole if one <= left]
        assert found, f"of task {task} of {writer} no attempt's rows are all there: {sorted(rows.items())}"
        left = left - max(found, key=len)
    assert not left, f"rows of {writer} that no winner has written, or that stand there twice: {sorted(left.items())}"


def _written(
    writer: str, task: int, number: int, plan: TaskPlan, attempt: AttemptPlan, outcome: Outcome
) -> Counter[Row]:
    batches = [(place, month, ROWS) for place, month in enumerate(plan.months)]
    if attempt.astray is not None:
        batches.append((ASTRAY, attempt.astray, 1))
    return Counter(
        (first_flight(writer, task, number, place) + row, partition_of(month, by_year=outcome.plan.by_year))
        for place, month, count in batches
        for row in range(count)
    )


def _is_of(writer: str, row: Row) -> bool:
    return row[0] // 100_000 == first_flight(writer, 0, 0, 0) // 100_000


def _rows(files: Mapping[str, Counter[Row]], named: list[Any]) -> Counter[Row]:
    return sum((files[file_path(file)] for file in named), Counter[Row]())


def _rows_of_files(outcome: Outcome) -> dict[str, Counter[Row]]:
    """Of all data files that ever were, also of those that are gone."""
    found: dict[str, Counter[Row]] = {}
    for event in outcome.history.of(Landed):
        if event.path.endswith(".parquet"):
            found[event.path] = Counter(_read(event.path, event.data))
    return found


def _read(path: str, data: bytes) -> Iterator[Row]:
    partition = path.rpartition("/")[0]
    for row in pq.ParquetFile(io.BytesIO(data)).read().to_pylist():
        assert partition.endswith(f"month={row['month']}"), f"{path} holds {row}"
        yield row["flight"], partition


def _writers(outcome: Outcome) -> dict[str, str]:
    """Instant to the name of its writer."""
    return {
        event.what.rpartition(" ")[2]: event.process
        for event in outcome.history.of(Befell)
        if event.what.startswith("has instant ")
    }
