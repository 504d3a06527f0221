"""Writers at once: which of them exclude each other, and what the loser leaves."""

import anyio
import pytest

from tallymark.engine.errors import ConflictError
from tests.engine.jobs.scene import Store, WallClock, begin, committed, table, write_rows
from tests.support.loops import on_both_loops
from tests.table_invariants import (
    commits,
    committed_files,
    data_files,
    decisions,
    fences,
    no_bookkeeping_is_left,
    only_committed_files_exist,
    table_is_at_rest,
)

dynamic = {"mode": "overwrite", "partition_overwrite": "dynamic"}
whole = {"mode": "overwrite"}
append = {"mode": "append"}


async def conflicting(store: Store, first: dict, second: dict, months=None, others=None) -> ConflictError | None:
    """Both begin; the first commits, then the second tries to. Returns what it is told."""
    told: ConflictError | None = None
    async with begin(store.backend, **first) as winner:
        report = await write_rows(winner, store.backend, months or {1: 2})
        try:
            async with begin(store.backend, **second) as loser:
                late = await write_rows(loser, store.backend, others or {1: 3})
                await winner.commit([report])
                await loser.commit([late])
        except ConflictError as error:
            told = error
    if told is not None:
        assert told.winner == winner.instant
        assert decisions(store.objects)[loser.instant]["kind"] == "rollback"
        left = {path for path in data_files(store.objects) if path.endswith(f"_{loser.instant}.parquet")}
        assert left <= fences(store.objects)
    return told


@on_both_loops
async def test_two_appends_at_once_both_succeed(store):
    await committed(store.backend)
    async with begin(store.backend) as one, begin(store.backend) as other:
        reports = [await write_rows(job, store.backend) for job in (one, other)]
        results = [await other.commit([reports[1]]), await one.commit([reports[0]])]
    assert [result.position for result in results] == [2, 3]
    assert len(committed_files(store.objects)) == 6
    table_is_at_rest(store.objects)


async def test_of_two_overwrites_of_one_partition_one_wins_and_the_other_leaves_nothing(store):
    await committed(store.backend, months={1: 5, 2: 5})
    error = await conflicting(store, dynamic, dynamic, {1: 2}, {1: 3, 2: 3})
    assert error is not None
    assert error.partition == "month=1"
    assert "month=1" in str(error)
    assert error.winner in str(error)
    assert {(f.partition, f.rows) for f in (await table(store.backend).snapshot()).files} == {
        ("month=1", 2),
        ("month=2", 5),
    }
    table_is_at_rest(store.objects)


async def test_the_loser_of_an_empty_partition_is_told_too(store):
    await committed(store.backend, months={2: 5})
    error = await conflicting(store, dynamic, dynamic)
    assert error is not None
    assert error.partition == "month=1"
    table_is_at_rest(store.objects)


async def test_overwrites_of_different_partitions_both_succeed(store):
    await committed(store.backend, months={1: 5, 2: 5})
    assert await conflicting(store, dynamic, dynamic, {1: 2}, {2: 3}) is None
    assert (await table(store.backend).snapshot()).rows == 5
    table_is_at_rest(store.objects)


@pytest.mark.parametrize("overwrite", [dynamic, whole], ids=["dynamic", "whole"])
async def test_files_appended_meanwhile_survive_an_overwrite(store, overwrite):
    await committed(store.backend, months={1: 5})
    assert await conflicting(store, append, overwrite, {1: 2}, {1: 3}) is None
    assert (await table(store.backend).snapshot()).rows == 5, "2 appended, 3 written; the old 5 replaced"
    table_is_at_rest(store.objects)


@pytest.mark.parametrize("overwrite", [dynamic, whole], ids=["dynamic", "whole"])
async def test_an_append_goes_on_after_an_overwrite(store, overwrite):
    await committed(store.backend, months={1: 5})
    assert await conflicting(store, overwrite, append, {1: 2}, {1: 3}) is None
    assert (await table(store.backend).snapshot()).rows == 5
    table_is_at_rest(store.objects)


@pytest.mark.parametrize(("first", "second"), [(whole, dynamic), (dynamic, whole), (whole, whole)])
async def test_an_overwrite_of_everything_excludes_every_other_overwrite(store, first, second):
    await committed(store.backend, months={1: 5, 2: 5})
    error = await conflicting(store, first, second)
    assert error is not None
    assert error.partition == "month=1"
    table_is_at_rest(store.objects)


async def test_two_overwrites_of_everything_exclude_each_other_on_an_empty_table_too(unstaged):
    error = await conflicting(unstaged, whole, whole)
    assert error is not None
    assert error.partition is None
    table_is_at_rest(unstaged.objects)


async def test_of_two_overwrites_with_nothing_one_is_told(unstaged):
    await committed(unstaged.backend)
    async with begin(unstaged.backend, **whole) as winner, begin(unstaged.backend, **whole) as loser:
        await winner.commit([])
        with pytest.raises(ConflictError):
            await loser.commit([])
    assert committed_files(unstaged.objects) == set()
    table_is_at_rest(unstaged.objects)


async def test_a_dynamic_overwrite_with_nothing_excludes_nobody(unstaged):
    await committed(unstaged.backend)
    async with begin(unstaged.backend, **whole) as other, begin(unstaged.backend, **dynamic) as nothing:
        report = await write_rows(other, unstaged.backend)
        await nothing.commit([])
        await other.commit([report])
    table_is_at_rest(unstaged.objects)


async def test_who_was_told_of_a_conflict_can_read_again_and_write_again(store):
    await committed(store.backend)
    assert await conflicting(store, dynamic, dynamic) is not None
    await committed(store.backend, "overwrite", {1: 7}, partition_overwrite="dynamic")
    table_is_at_rest(store.objects)


@on_both_loops
async def test_many_writers_in_one_millisecond_each_get_an_instant_and_all_commit(store):
    clock = WallClock()
    await committed(store.backend)

    async def write() -> None:
        async with begin(table(store.backend, clock=clock)) as job:
            await job.commit([await write_rows(job, store.backend, {1: 1})])

    async with anyio.create_task_group() as writers:
        for _ in range(12):
            writers.start_soon(write)
    assert len(commits(store.objects)) == 13
    no_leftovers_but_beats(store)
    only_committed_files_exist(store.objects)
    store.clock.pass_lease()
    await table(store.backend).clean()
    table_is_at_rest(store.objects)


def no_leftovers_but_beats(store: Store) -> None:
    """Who came to an instant too late may have left a beat and a type there; they go with the lease."""
    left = {
        path: data
        for path, data in store.objects.items()
        if not path.startswith(".hoodie/.tallymark/beat/") and not path.endswith("/MARKERS.type")
    }
    no_bookkeeping_is_left(left)
