"""Commits through a network where a third of all requests meets a fault: every promise holds, on S3 and on GCS.

Two writers commit at the same time to one table, each into partitions of its own, mostly appends, and sometimes an
overwrite of what it has written: no two of them exclude each other, so every ConflictError is a lie.

Fewer here than a release is accepted by: ``TALLYMARK_TESTS_FULL=1`` plays 50 commits of 200 files on each.
"""

import os
from functools import partial
from itertools import count
from pathlib import Path

import anyio
import pytest

import tallymark
from tallymark import LeaseSettings
from tests.support.place import Place
from tests.support.services.fault_plan import Kind
from tests.system.chaos.judge import Story, judge
from tests.system.chaos.lives import Journal, WriterOfJob
from tests.system.chaos.plans import JobPlan, Mode
from tests.system.chaos.rounds import LyingStore
from tests.system.pool_worker import TaskPlan
from tests.table_invariants import commits, table_is_at_rest

COMMITS, FILES = (50, 200) if os.environ.get("TALLYMARK_TESTS_FULL") else (4, 40)
"""And how many files each of them has."""
RATE = 0.05
"""Of each kind of fault."""
TASKS = 4
OVERWRITE_EVERY = 5
SHORT_LEASE = LeaseSettings(heartbeat_interval_s=0.5, expiry_s=2.0)
STAMP_S = 2.0
"""By how much a heartbeat may seem younger than it is: stamps are of whole seconds."""


def plan_of(number: int, writer: str) -> JobPlan:
    parts = tuple(f"{writer}{part}" for part in range(FILES // TASKS))
    rows = 2 * len(parts)
    tasks = tuple(
        TaskPlan(task=task, first_id=(number * TASKS + task) * rows, parts=parts, row_count=2) for task in range(TASKS)
    )
    mode: Mode = "append" if number % OVERWRITE_EVERY else "dynamic overwrite"
    return JobPlan(number=number, table="plain", mode=mode, tasks=tasks)


async def commit(place: Place, folder: Path, plans: dict[int, JobPlan]) -> None:
    """So often, each begun again for as long as it fails."""
    table, journal = tallymark.open_table(place.url, options=place.options), Journal(folder / "writers.journal")
    left, numbers = iter(range(COMMITS)), count(1)

    async def write(writer: str) -> None:
        for _ in left:
            has_committed = False
            while not has_committed:
                plan = plan_of(next(numbers), writer)
                plans[plan.number] = plan
                job = WriterOfJob(table, plan, journal, ())
                await job.run()
                has_committed = job.has_committed

    async with anyio.create_task_group() as group:
        for writer in ("v", "w"):
            group.start_soon(write, writer)


async def put_in_order(place: Place) -> None:
    """What a writer could not finish is finished by name, as an operator may: its lease would run for minutes.

    A heartbeat that has landed after its instant's end is deleted by the first clean that finds it older than a lease.
    """
    table = tallymark.open_table(place.url, options=place.options, lease=SHORT_LEASE)
    for left in await table.open_instants():
        await table.rollback(left.instant)
    await anyio.sleep(SHORT_LEASE.expiry_s + STAMP_S)
    await table.clean()


@pytest.mark.parametrize("store", ["s3", "gcs"])
def test_commits_amid_faults_of_every_kind_keep_every_promise(
    request: pytest.FixtureRequest, store: str, tmp_path: Path
) -> None:
    ground, plans = LyingStore(tmp_path, request.getfixturevalue(store), RATE), dict[int, JobPlan]()
    with ground.tables(1) as tables:
        place = tables["plain"].place
        anyio.run(partial(commit, place, tmp_path, plans), backend="trio")
        seen = ground.calm()
        anyio.run(put_in_order, place, backend="trio")
        storage, story = place.objects(), Story.of(tmp_path)
    print(seen, story.notes)
    assert {kind for kind in Kind if not any(kind.name.lower().replace("_", " ") in name for name in seen)} == set()
    assert seen["faults"] > seen["requests"] * RATE * len(Kind) / 2
    assert [*judge({"plain": storage}, plans, story)] == []
    table_is_at_rest(storage)
    told = [note for note in story.having("told") if note["told"] != "not committed"]
    assert [note["told"] for note in told] == ["committed"] * COMMITS
    assert {entry["instant"] for entry in commits(storage)} == {note["instant"] for note in told}
    assert [note for note in story.having("error") if note["error"].startswith("ConflictError")] == []
