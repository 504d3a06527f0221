"""Twenty drivers of real processes begin in one millisecond of clocks that are up to five seconds apart."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest

from tests.support.storage import objects
from tests.system.forked import Start
from tests.system.pool_driver import JobBegun, JobEnded, Waiting, WriteMode, WritePlan, drive
from tests.system.pool_worker import Row, TaskPlan
from tests.system.scene import BASE, append, assert_at_rest, rows_of
from tests.table_invariants import committed_files, log_entries, overwrites_replace_what_their_base_held

WRITERS = 20
MOMENT = datetime(2030, 11, 21, 2, 3, 4, tzinfo=UTC)
"""Beyond the instant that the machine's clock has given the table's first write."""

CLOCKS_APART = {"same": (0.0,), "apart": (0.0, 5.0), "spread": (0.0, 1.25, 2.5, 5.0)}
"""Seconds; those who share one ask for one millisecond."""


def plans(table: Path, random: Random, offsets: tuple[float, ...]) -> list[WritePlan]:
    """Half of them append, a quarter overwrites all, a quarter the parts that it writes."""
    quarters: list[WriteMode] = ["append", "append", "whole overwrite", "dynamic overwrite"]
    modes = quarters * (WRITERS // 4)
    random.shuffle(modes)
    return [
        WritePlan(
            table=str(table),
            mode=mode,
            tasks=(TaskPlan(first_id=1000 * (number + 1), parts=tuple(random.sample("abcd", 2))),),
            now=MOMENT + timedelta(seconds=offsets[number % len(offsets)]),
            loop="asyncio" if number % 2 else "trio",
            waits="to begin",
        )
        for number, mode in enumerate(modes)
    ]


@pytest.mark.parametrize("clocks", CLOCKS_APART)
def test_twenty_writers_that_begin_at_once_get_an_instant_each_and_lose_nothing(
    tmp_path: Path, start: Start, clocks: str
) -> None:
    table = tmp_path / "table"
    append(table, *BASE)
    writes = plans(table, Random(clocks), CLOCKS_APART[clocks])
    drivers = [start(drive, write) for write in writes]
    for driver in drivers:
        driver.hear(Waiting)
    for driver in drivers:
        driver.tell("go")
    instants = [driver.hear(JobBegun).instant for driver in drivers]
    ends = [driver.hear(JobEnded).outcome for driver in drivers]
    story = [*zip(instants, [write.mode for write in writes], ends, strict=True)]
    assert len(set(instants)) == WRITERS, story
    assert all(end == "committed" or (end == "ConflictError" and mode != "append") for _, mode, end in story), story
    for driver in drivers:
        driver.await_all()
    rows = {instant: write.rows for instant, write in zip(instants, writes, strict=True)}
    overwrites_replace_what_their_base_held(objects(table))
    assert_at_rest(table, live_rows(table, rows))
    decided = {entry["instant"]: entry["kind"] for entry in log_entries(objects(table))}
    assert {instant: decided[instant] for instant in instants} == {
        instant: "commit" if end == "committed" else "rollback" for instant, _, end in story
    }


def live_rows(table: Path, written: dict[str, list[Row]]) -> list[Row]:
    """The rows that each live file was written with: every task has written one file in each of its parts."""
    base = rows_of(*BASE)
    rows: list[Row] = []
    for path in committed_files(objects(table)):
        folder, _, name = path.partition("/")
        _, token, instant = name.removesuffix(".parquet").split("_")
        part, is_second_task = folder.removeprefix("part="), token.startswith("1-")
        own = written.get(instant) or [row for row in base if (row[0] >= 100) == is_second_task]
        rows += [row for row in own if row[1] == part]
    return rows
