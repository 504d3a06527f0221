"""An append fills small files: the commit adds the new file and removes the old one, or gives the fill up."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import anyio.from_thread
import msgpack
import pytest

from tallymark.backends.errors import NotFound, Unavailable
from tallymark.engine.errors import InvalidRequest, RolledBack
from tallymark.engine.jobs.fill_claims import claim_path
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.settings import SizingSettings
from tallymark.engine.sizing import WorkloadProfile
from tallymark.engine.sizing.profile import FileUpdates
from tallymark.engine.tasks.report import Fill, TaskReport
from tallymark.engine.timeline.entry import DataFile
from tests.engine.jobs.filling import Months, appended, filling_job, profile_of, task_of
from tests.engine.jobs.scene import Store, rows_in, table
from tests.support.faulty import FaultyBackend, lost_answer, lost_request

pytestmark = pytest.mark.usefixtures("loop")


def flights_in(store: Store) -> dict[int, list[int]]:
    """What the committed files hold, by month, as the files themselves say."""
    found: dict[int, list[int]] = {}
    for row in rows_in(store.objects):
        found.setdefault(row["month"], []).append(row["flight"])
    return {month: sorted(flights) for month, flights in found.items()}


async def test_an_append_fills_the_small_file_of_its_partition(store):
    await appended(store.backend, {1: [1, 2], 2: [3]})
    result = await appended(store.backend, {1: [4]})
    assert (result.files, result.removed_files, result.rows) == (1, 1, 1)
    assert flights_in(store) == {1: [1, 2, 4], 2: [3]}
    assert len(store.committed_files) == 2
    store.check_at_rest()


async def test_what_a_file_has_cost_is_told_by_the_log(unstaged):
    sizes = []
    for number in range(3):
        await appended(unstaged.backend, {1: [number]})
        (file,) = (await table(unstaged.backend).snapshot()).files
        sizes.append(file.bytes)
        assert file.rewritten_bytes == sum(sizes[:-1])
        assert file.plain_bytes == (number + 1) * 12


async def test_a_profile_with_updates_is_refused_and_the_job_goes_on(unstaged):
    """An append brings rows and replaces none."""
    await appended(unstaged.backend, {1: [1]})
    async with filling_job(unstaged.backend, {1: [2]}) as (job, report):
        updates = FileUpdates(report.fills[0].old, 1)
        with pytest.raises(InvalidRequest, match=r"updates of 1 files, the first of month=1/.*: appends and overw"):
            await job.size(WorkloadProfile(incoming=(), updates=(updates,)))
        await job.commit([report])
    assert flights_in(unstaged) == {1: [1, 2]}


async def test_with_sizing_off_nothing_is_planned(unstaged):
    await appended(unstaged.backend, {1: [1]})
    for sizing in (None, SizingSettings(small_file_bytes=0)):
        await appended(unstaged.backend, {1: [2]}, sizing=sizing)
    assert len(unstaged.committed_files) == 3


async def test_what_another_live_write_fills_is_left_alone(unstaged):
    await appended(unstaged.backend, {1: [1]})
    async with filling_job(unstaged.backend, {1: [2]}) as (first, report):
        (small,) = (await table(unstaged.backend).snapshot()).files
        assert msgpack.unpackb(unstaged.objects[claim_path(first.instant)]) == [small.path]
        result = await appended(unstaged.backend, {1: [3]})
        assert result.removed_files == 0
        await first.commit([report])
    assert flights_in(unstaged) == {1: [1, 2, 3]}
    unstaged.check_at_rest()


@asynccontextmanager
async def rivals(
    store: Store, months: Months | None = None
) -> AsyncIterator[tuple[WriteJob, TaskReport, FaultyBackend]]:
    """Two writes that took one small file, since neither knew of the other; the second is to commit yet."""
    await appended(store.backend, {1: [1, 2]})
    storage = FaultyBackend(store.backend)
    async with filling_job(storage, months or {1: [3]}) as (job, report):
        await store.backend.delete([claim_path(job.instant)])
        await appended(store.backend, {1: [4]})
        yield job, report, storage


async def test_of_several_fills_only_those_that_were_lost_are_cut_anew(store):
    await appended(store.backend, {2: [20], 3: [30]})
    async with rivals(store, {1: [3], 2: [21], 3: [31]}) as (job, report, _):
        result = await job.commit([report])
    assert result.removed_files == 2
    assert flights_in(store) == {1: [1, 2, 3, 4], 2: [20, 21], 3: [30, 31]}
    store.check_at_rest()


@pytest.mark.parametrize(
    ("fault", "is_told"),
    [
        (lost_answer("publish", nth=1), False),
        (lost_request("publish", nth=1), False),
        (lost_request("get", "month=1/*", nth=1), True),
    ],
    ids=["lost answer", "lost request", "lost read"],
)
async def test_a_file_that_storage_lost_while_it_was_cut_anew_is_cut_by_this_commit_or_the_next(store, fault, is_told):
    async with rivals(store) as (job, report, storage):
        storage.add(fault)
        if is_told:
            with pytest.raises(Unavailable):
                await job.commit([report])
        result = await job.commit([report])
    assert result.rows == 1
    assert flights_in(store) == {1: [1, 2, 3, 4]}
    store.check_at_rest()


async def test_a_plan_that_fills_nothing_gives_back_what_an_earlier_one_took(unstaged):
    await appended(unstaged.backend, {1: [1]})
    async with filling_job(unstaged.backend, {1: [2]}) as (job, _):
        assert len(msgpack.unpackb(unstaged.objects[claim_path(job.instant)])) == 1
        await job.size(profile_of({2: [2]}))
        assert msgpack.unpackb(unstaged.objects[claim_path(job.instant)]) == []


async def test_a_rerun_of_a_committed_write_plans_nothing(unstaged):
    first = await appended(unstaged.backend, {1: [1]}, txn="hours:1")
    again = await appended(unstaged.backend, {1: [1]}, txn="hours:1")
    assert (again.is_rerun, again.position) == (True, first.position)
    assert flights_in(unstaged) == {1: [1]}


async def test_a_fill_that_was_not_planned_or_is_reported_twice_is_refused(unstaged):
    await appended(unstaged.backend, {1: [1], 2: [2]})
    async with filling_job(unstaged.backend, {1: [3]}) as (job, report):
        (fill,) = report.fills
        other = DataFile("month=2", "x.parquet", 1, 1)
        for fills in [(Fill(other, fill.paths),), (Fill(fill.old, ("month=1/x.parquet",)),), (Fill(fill.old, ()),)]:
            with pytest.raises(InvalidRequest, match="fills"):
                await job.commit([replace(report, fills=fills)])
        twin = await task_of(job, unstaged.backend, {1: [3]}, (await job.size(profile_of({1: [3]}))).files, task=1)
        with pytest.raises(InvalidRequest, match="doubled"):
            await job.commit([report, twin])
        await job.commit([report])
    assert flights_in(unstaged) == {1: [1, 3], 2: [2]}
    unstaged.check_at_rest()


async def test_a_table_for_readers_of_its_log_keeps_a_filled_file_for_a_while(unstaged):
    first = await appended(unstaged.backend, {1: [1]}, readers="table")
    (small,) = (await table(unstaged.backend).snapshot()).files
    await appended(unstaged.backend, {1: [2]})
    assert small.path in unstaged.objects
    assert [file.path for file in (await table(unstaged.backend).snapshot(first.position)).files] == [small.path]
    unstaged.check_at_rest()


async def test_while_a_lost_fill_is_rewritten_sealed_tasks_stay_sealed(staged):
    async with rivals(staged) as (job, report, storage):
        refused = []

        def looked(path: str) -> bool:
            """A task that was marked in time begins its file only now."""
            with pytest.raises(NotFound):
                staged.backend.new_file("month=1/late.parquet", staging=job.ticket.staging)
            refused.append(path)
            return False

        storage.add(lost_request("publish", looked))
        await job.commit([report])
        assert len(refused) == 1
    staged.check_at_rest()


async def test_a_job_rolled_back_while_it_rewrites_a_lost_fill_adds_no_file(store):
    async with rivals(store) as (job, report, storage):

        def rolled_back(path: str) -> bool:
            """In the moment before the file is published."""
            anyio.from_thread.run(table(store.backend).rollback, job.instant)
            return False

        storage.add(lost_request("publish", rolled_back))
        with pytest.raises(RolledBack):
            await job.commit([report])
        assert store.data_files - store.fences == store.committed_files
    assert flights_in(store) == {1: [1, 2, 4]}
    store.check_at_rest()
