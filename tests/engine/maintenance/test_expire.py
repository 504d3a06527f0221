"""Replaced files of a table with ``readers="table"``: how long they stay, and how they go."""

from dataclasses import replace

import anyio
import pytest

from tallymark.engine.clock import Clock
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.jobs.prepare import read_properties
from tallymark.engine.maintenance.expire import expire_due
from tallymark.engine.settings import CommitSettings
from tallymark.engine.timeline.properties import TableProperties
from tests.engine.jobs.scene import LEASE, Store, TickingClock, begin, committed, die, table, write_rows
from tests.support.faulty import FaultyBackend, lost_request, refused
from tests.support.loops import on_both_loops
from tests.table_invariants import table_is_at_rest

HOUR_S = 3600.0


async def replaced(store: Store, *, clock: Clock | None = None, **made) -> set[str]:
    """A table with two files, of which an overwrite of one month has replaced the first; returns that file's path."""
    await committed(store.backend, months={1: 2, 2: 2}, readers="table", clock=clock, **made)
    before = store.data_files
    await committed(store.backend, "overwrite", {1: 3}, partition_overwrite="dynamic", clock=clock)
    gone = before - store.committed_files
    assert len(gone) == 1
    return gone


async def test_replaced_files_stay_for_their_hours_by_the_stores_clock_and_not_longer(store):
    old = await replaced(store, retain_hours=24)
    assert store.retained_files == old
    store.check_at_rest()
    store.clock.now += 24 * HOUR_S - 1
    kept = await table(store.backend).clean()
    assert (kept.files, kept.horizon) == (0, 0)
    assert old <= store.data_files
    store.clock.now += 1
    gone = await table(store.backend).clean()
    assert (gone.files, gone.partitions, gone.horizon, gone.is_dry_run) == (1, ("month=1",), 2, False)
    assert gone.bytes > 0
    assert not old & store.data_files
    store.check_at_rest()


class Clocks:
    """The store's, and that of a writer's machine; both go on together unless told otherwise."""

    def __init__(self, store: Store) -> None:
        self.store = store.clock
        self.wall = TickingClock()

    def pass_s(self, seconds: float) -> None:
        self.store.now += seconds
        self.wall.pass_s(seconds)


def kinds(store: Store) -> list[str]:
    return [entry["kind"] for entry in store.log_entries]


@pytest.mark.parametrize(("settings", "hours"), [({}, 25), ({"clean_overdue_ratio": 0}, 24)])
async def test_each_write_lets_go_at_its_end_what_is_overdue_by_a_part_of_its_hours(staged, settings, hours):
    clocks = Clocks(staged)
    old = await replaced(staged, retain_hours=24, clock=clocks.wall)
    writer = table(staged.backend, commit=CommitSettings(**settings), clock=clocks.wall)
    for passed_s, stays in ((hours * HOUR_S - 2, True), (2, False)):
        clocks.pass_s(passed_s)
        async with begin(writer) as job:
            await job.commit([await write_rows(job, staged.backend, {3: 1})])
        assert (old <= staged.data_files) is stays
    assert kinds(staged) == ["commit"] * 4 + ["clean"]
    staged.check_at_rest()


@pytest.mark.no_cover
async def test_writes_that_each_replace_something_do_not_cause_a_clean_each(unstaged):
    """One an hour with 24 hours kept, and it lets go all that is due by then."""
    clocks = Clocks(unstaged)
    await replaced(unstaged, retain_hours=24, clock=clocks.wall)
    for _ in range(30 * 6):
        clocks.pass_s(600)
        await committed(unstaged.backend, "overwrite", {1: 1}, partition_overwrite="dynamic", clock=clocks.wall)
    assert kinds(unstaged).count("clean") == 5
    assert len(unstaged.retained_files) <= 25 * 6
    table_is_at_rest({path: data for path, data in unstaged.objects.items() if "/beat/" not in path})


async def listings_of_the_log(store: Store, clocks: Clocks) -> int:
    """Of the write of a handle that has read the log: those that its own cleaning makes."""
    storage = FaultyBackend(store.backend)
    handle, properties = await opened(storage, clocks.wall)
    read = len(storage.paths("list"))
    await expire_due(handle, properties)
    return len(storage.paths("list")) - read


async def opened(storage: FaultyBackend, clock: Clock) -> tuple[TableHandle, TableProperties]:
    handle = TableHandle(storage, CommitSettings(), LEASE, clock)
    await handle.log.refresh()
    properties = await read_properties(storage)
    assert properties is not None
    return handle, properties


async def test_while_nothing_can_be_due_a_write_asks_storage_for_nothing(unstaged):
    clocks = Clocks(unstaged)
    await replaced(unstaged, retain_hours=24, clock=clocks.wall)
    assert await listings_of_the_log(unstaged, clocks) == 0
    clocks.pass_s(25 * HOUR_S - 1)
    assert await listings_of_the_log(unstaged, clocks) == 0
    clocks.pass_s(1)
    assert await listings_of_the_log(unstaged, clocks) > 0


async def test_a_clock_that_is_ahead_makes_a_write_look_and_lets_nothing_go(unstaged):
    clocks = Clocks(unstaged)
    old = await replaced(unstaged, retain_hours=24, clock=clocks.wall)
    clocks.wall.pass_s(1000 * HOUR_S)
    await committed(unstaged.backend, months={3: 1}, clock=clocks.wall)
    assert old <= unstaged.data_files
    assert kinds(unstaged) == ["commit"] * 3


async def test_instants_from_a_clock_that_was_ahead_do_not_keep_writes_from_looking(unstaged):
    clocks = Clocks(unstaged)
    ahead = TickingClock()
    ahead.pass_s(1000 * HOUR_S)
    old = await replaced(unstaged, retain_hours=24, clock=ahead)
    clocks.pass_s(25 * HOUR_S)
    await committed(unstaged.backend, months={3: 1}, clock=clocks.wall)
    assert not old & unstaged.data_files


async def test_a_commit_is_told_before_anything_goes(staged):
    """Off the commit path: when the commit returns, what is due is there still."""
    old = await replaced(staged, retain_hours=0)
    async with begin(staged.backend, "overwrite", partition_overwrite="dynamic") as job:
        report = await write_rows(job, staged.backend, {2: 1})
        before = staged.data_files
        await job.commit([report])
        assert staged.data_files == before
    assert not old & staged.data_files, "the overwrite's own end lets go, with no hours to keep"
    assert staged.committed_files <= staged.data_files


@on_both_loops
async def test_two_cleans_at_once_let_go_once(unstaged):
    await replaced(unstaged)
    unstaged.clock.now += 24 * HOUR_S
    results = []

    async def clean() -> None:
        results.append(await table(unstaged.backend).clean())

    async with anyio.create_task_group() as cleans:
        for _ in range(3):
            cleans.start_soon(clean)
    assert sum(result.files for result in results) == 1
    assert {result.horizon for result in results} == {2}
    assert [entry["kind"] for entry in unstaged.log_entries].count("clean") == 1
    unstaged.check_at_rest()


async def test_nothing_goes_before_readers_of_hudi_see_that_it_was_replaced(unstaged):
    await committed(unstaged.backend, months={1: 1}, readers="table", retain_hours=0)
    dying = FaultyBackend(unstaged.backend, refused("put_new", "*.replacecommit"))
    overwrite = await committed(dying, "overwrite", {1: 2})
    assert overwrite.pending is not None
    storage = FaultyBackend(unstaged.backend, lost_request("delete", "month=*"))
    handle, properties = await opened(storage, Clocks(unstaged).wall)
    with pytest.raises(OSError, match="lost"):
        await expire_due(handle, properties)
    assert f".hoodie/{overwrite.instant}.replacecommit" in unstaged.objects


async def test_a_write_whose_cleaning_fails_is_committed_all_the_same(unstaged, caplog):
    clocks = Clocks(unstaged)
    old = await replaced(unstaged, retain_hours=0.5, clock=clocks.wall)
    clocks.pass_s(HOUR_S)
    storage = FaultyBackend(unstaged.backend, lost_request("delete", "month=1/*"))
    result = await committed(storage, months={3: 1}, clock=clocks.wall)
    assert result.position == 3
    assert "clean.postponed" in caplog.text
    assert old <= unstaged.data_files
    unstaged.clock.pass_lease()
    await table(unstaged.backend).clean()
    unstaged.check_at_rest()


async def test_deletes_are_told_as_they_go(unstaged, monkeypatch):
    monkeypatch.setattr("tallymark.engine.instants.finish.DELETE_BATCH", 2)
    await committed(unstaged.backend, months={1: 1, 2: 1, 3: 1, 4: 1, 5: 1}, readers="table")
    await committed(unstaged.backend, "overwrite", {1: 1})
    told = []
    await table(unstaged.backend).clean(retain_hours=0, progress=lambda done, total: told.append((done, total)))
    assert told == [(2, 5), (4, 5), (5, 5)]


async def test_a_long_delete_keeps_its_lease(unstaged):
    """Another writer does not take a clean for dead that deletes for hours."""
    await replaced(unstaged)
    unstaged.clock.now += 24 * HOUR_S

    class Slow(FaultyBackend):
        async def delete(self, paths):
            if any(path.startswith("month=1/") for path in paths):
                unstaged.clock.now += 1
                started = unstaged.clock.now
                await anyio.sleep(60)
                assert any(time >= started for path, time in unstaged.modified.items() if "/beat/" in path)
            await super().delete(paths)

    assert (await table(Slow(unstaged.backend)).clean()).files == 1
    unstaged.check_no_bookkeeping()


async def test_a_dry_run_tells_what_would_go_and_leaves_storage_as_it_is(store):
    await replaced(store)
    async with begin(store.faulty) as job:
        await write_rows(job, store.faulty)
        die(store.faulty)
    store.clock.now += 24 * HOUR_S
    before = {path: (data, store.modified[path]) for path, data in store.objects.items()}
    plan = await table(store.backend).clean(dry_run=True)
    assert {path: (data, store.modified[path]) for path, data in store.objects.items()} == before
    assert plan.is_dry_run
    assert [(ended.instant, ended.outcome, ended.marked) for ended in plan.ended] == [(job.instant, "rolled back", 2)]
    assert (plan.files, plan.partitions, plan.horizon) == (1, ("month=1",), 2)
    result = await table(store.backend).clean()
    assert [ended.instant for ended in result.ended] == [job.instant]
    assert replace(result, ended=plan.ended, is_dry_run=True) == plan


async def test_a_dry_run_counts_fences_that_are_due(unstaged):
    async with begin(unstaged.faulty) as job:
        await write_rows(job, unstaged.faulty)
        die(unstaged.faulty)
    unstaged.clock.now += 200
    await table(unstaged.backend).rollback()
    assert (await table(unstaged.backend).clean(dry_run=True)).fences_swept == 0
    unstaged.clock.now += 24 * HOUR_S
    before = unstaged.objects
    assert (await table(unstaged.backend).clean(dry_run=True)).fences_swept == 2
    assert unstaged.objects == before


async def test_a_dry_run_that_may_not_write_goes_by_the_newest_entry(unstaged):
    await replaced(unstaged, retain_hours=1)
    unstaged.clock.now += HOUR_S
    storage = FaultyBackend(unstaged.backend, refused("put"), refused("put_new"), refused("delete"))
    assert (await table(storage).clean(dry_run=True)).files == 0
    async with begin(unstaged.backend) as job:
        await job.commit([await write_rows(job, unstaged.backend)])
        assert (await table(storage).clean(dry_run=True)).files == 1
