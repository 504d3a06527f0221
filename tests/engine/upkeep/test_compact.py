"""A compaction changes files and no rows, and every writer goes before it."""

import anyio
import pyarrow as pa
import pytest
from anyio.abc import TaskStatus

from tallymark.backends.errors import Unavailable
from tallymark.backends.local import LocalBackend
from tallymark.engine.errors import ConflictError, CorruptObject
from tallymark.engine.jobs.fill_claims import claim_path
from tallymark.engine.settings import NO_SIZING
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.upkeep.compact import Compaction
from tests.engine.jobs.filling import appended, filling_job, rows_of
from tests.engine.jobs.scene import FLIGHTS, Store, begin, mark, name_of, publish, rows_in, table, write_in_thread
from tests.engine.upkeep.compacting import compacted
from tests.support.faulty import FaultyBackend, refused
from tests.support.hudi_table import rows_by_hudi

pytestmark = pytest.mark.usefixtures("loop")


async def small_files(store: Store, *flights: int, month: int = 1) -> None:
    """A file of each flight."""
    for flight in flights:
        await appended(store.backend, {month: [flight]}, sizing=NO_SIZING)


def flights_in(store: Store) -> list[int]:
    """Of all months, as many times as they are there."""
    return sorted(row["flight"] for row in rows_in(store.objects))


async def overwrite(store: Store, *flights: int, **named) -> None:
    """Overwrite month 1 with these."""
    async with begin(store.backend, "overwrite", partition_overwrite="dynamic", **named) as job:
        await job.commit([await write_in_thread(job, store.backend, rows_of({1: flights}))])


async def test_small_files_become_one_and_every_position_keeps_its_rows(store):
    await appended(store.backend, {1: [0]}, sizing=NO_SIZING, readers="table")
    await small_files(store, 1, 2, 3)
    await small_files(store, 20, 21, month=2)
    found = await compacted(store.backend, 1, 2, 3)
    assert found.result is not None
    assert (found.idle, found.yielded_to) == (frozenset({"month=3"}), None)
    assert (found.result.rows, found.result.files, found.result.removed_files) == (0, 2, 6)
    assert flights_in(store) == [0, 1, 2, 3, 20, 21]
    assert [file.rows for file in (await table(store.backend).snapshot()).files] == [4, 2]
    assert len((await table(store.backend).snapshot(found.result.position - 1)).files) == 6
    assert await compacted(store.backend, 1, 2) == Compaction(idle=frozenset({"month=1", "month=2"}))
    store.check_projection()
    store.check_no_bookkeeping()


async def test_replaced_files_are_deleted_where_readers_read_the_directory(store):
    await small_files(store, 1, 2, 3)
    await compacted(store.backend, 1)
    assert len(store.data_files) == 1
    assert flights_in(store) == [1, 2, 3]
    store.check_at_rest()


async def test_readers_of_the_hudi_format_see_each_row_once(tmp_path):
    backend = LocalBackend(tmp_path)
    for flight in range(5):
        await appended(backend, {1: [flight], 2: [10 + flight]}, sizing=NO_SIZING)
    found = await compacted(backend, 1, 2)
    await appended(backend, {1: [5]}, sizing=NO_SIZING)
    assert found.result is not None
    assert (found.result.files, found.result.removed_files) == (2, 10)
    assert rows_by_hudi(tmp_path).sort_by("flight")["flight"].to_pylist() == [0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14]
    assert len(list(tmp_path.glob("month=*/*.parquet"))) == 3


async def test_a_compaction_waits_for_the_count_of_files_unless_the_partition_is_quiet(staged):
    await small_files(staged, *range(15))
    assert (await compacted(staged.backend, 1, is_quiet=False)).result is None
    await small_files(staged, 15)
    found = await compacted(staged.backend, 1, is_quiet=False)
    assert found.result is not None
    assert (found.result.removed_files, flights_in(staged)) == (16, list(range(16)))


@pytest.mark.parametrize("mode", ["overwrite", "delete"])
async def test_it_does_not_start_while_a_writer_is_open_that_may_replace_its_files(store, mode):
    await small_files(store, 1, 2)
    named = {"where": "flight = 1"} if mode == "delete" else {"schema": FLIGHTS, "partition_by": ["month"]}
    async with table(store.backend).write(mode=mode, **named) as job:
        assert await compacted(store.backend, 1) == Compaction(yielded_to=job.instant)
    assert (len(store.committed_files), flights_in(store)) == (2, [1, 2])
    store.check_at_rest()


async def test_an_overwrite_that_is_begun_while_files_are_merged_makes_it_give_up(store):
    await small_files(store, 1, 2)
    may_commit = anyio.Event()

    async def write(*, task_status: TaskStatus[str]) -> None:
        async with begin(store.backend, "overwrite") as job:
            task_status.started(job.instant)
            await may_commit.wait()
            await job.commit([await write_in_thread(job, store.backend, rows_of({1: [7]}))])

    async with anyio.create_task_group() as tasks:
        begun: list[str] = []

        async def begin_overwrite() -> None:
            begun.append(await tasks.start(write))

        found = await compacted(store.backend, 1, before_claim=begin_overwrite)
        assert found == Compaction(yielded_to=begun[0])
        may_commit.set()
    assert flights_in(store) == [7]
    store.check_at_rest()


@pytest.mark.parametrize("moment", ["before_claim", "before_commit"])
async def test_an_overwrite_that_commits_in_the_middle_of_a_compaction_wins(store, moment):
    await small_files(store, 1, 2)

    async def win() -> None:
        await overwrite(store, 7)

    moments = {"before_claim": None, "before_commit": None, moment: win}
    found = await compacted(
        store.backend, 1, before_claim=moments["before_claim"], before_commit=moments["before_commit"]
    )
    assert found.result is None
    assert found.yielded_to is not None
    assert flights_in(store) == [7]
    store.check_at_rest()


async def test_of_two_compactions_of_one_partition_the_second_loses(store):
    await small_files(store, 1, 2)
    inner: list[Compaction] = []

    async def other() -> None:
        await store.backend.delete([path for path in store.stored if path.endswith("/FILLS")])
        inner.append(await compacted(store.backend, 1))

    outer = await compacted(store.backend, 1, before_commit=other)
    [first] = inner
    assert first.result is not None
    assert (outer.result, outer.yielded_to) == (None, first.result.instant)
    assert (len(store.committed_files), flights_in(store)) == (1, [1, 2])
    store.check_at_rest()


async def test_it_leaves_files_alone_that_an_append_fills(store):
    await small_files(store, 1)
    async with filling_job(store.backend, {1: [9]}) as (job, report):
        await small_files(store, 2, 3)
        found = await compacted(store.backend, 1)
        assert found.result is not None
        assert found.result.removed_files == 2
        assert (await job.commit([report])).removed_files == 1
    assert (len(store.committed_files), flights_in(store)) == (2, [1, 2, 3, 9])
    store.check_at_rest()


async def test_a_plan_leaves_files_alone_that_are_being_merged(store):
    await small_files(store, 1, 2)

    async def fill() -> None:
        await appended(store.backend, {1: [9]})

    found = await compacted(store.backend, 1, before_commit=fill)
    assert found.result is not None
    assert found.result.removed_files == 2
    assert (len(store.committed_files), flights_in(store)) == (2, [1, 2, 9])
    store.check_at_rest()


async def test_an_append_that_has_filled_a_file_which_was_merged_writes_its_rows_into_a_separate_one(store):
    await small_files(store, 1, 2)
    async with filling_job(store.backend, {1: [9]}) as (job, report):
        await store.backend.delete([claim_path(job.instant)])
        assert (await compacted(store.backend, 1)).result is not None
        assert (await job.commit([report])).removed_files == 0
    assert (len(store.committed_files), flights_in(store)) == (2, [1, 2, 9])
    store.check_at_rest()


async def test_an_overwrite_of_what_was_read_before_a_compaction_replaces_the_merged_file(store):
    await small_files(store, 1, 2)
    base = (await table(store.backend).snapshot()).position
    await compacted(store.backend, 1)
    await small_files(store, 3)
    await overwrite(store, 7, base=base)
    assert flights_in(store) == [3, 7]
    store.check_at_rest()


async def test_an_overwrite_that_has_not_read_all_that_was_merged_conflicts(store):
    await small_files(store, 1, 2)
    base = (await table(store.backend).snapshot()).position
    await small_files(store, 3)
    await compacted(store.backend, 1)
    with pytest.raises(ConflictError, match="has merged files of that since"):
        await overwrite(store, 7, base=base)
    assert flights_in(store) == [1, 2, 3]
    store.check_at_rest()


async def test_a_file_that_cannot_be_read_fails_the_compaction_and_nothing_of_it_is_left(store):
    await small_files(store, 1, 2)
    storage = FaultyBackend(store.backend)
    storage.add(refused("get", "month=*", error=Unavailable("no answer")))
    with pytest.raises(Unavailable):
        await compacted(storage, 1)
    storage.heal()
    path = min(store.data_files)
    data = store.stored[path]
    await store.backend.put(path, data[: len(data) // 2])
    with pytest.raises(CorruptObject, match=path):
        await compacted(storage, 1)
    await store.backend.put(path, data)
    assert flights_in(store) == [1, 2]
    store.check_at_rest()


async def test_a_file_that_is_missing_makes_it_give_up(store):
    await small_files(store, 1, 2)
    path = min(store.data_files)
    data = store.stored[path]
    await store.backend.delete([path])
    assert await compacted(store.backend, 1) == Compaction(yielded_to="")
    await store.backend.put(path, data)
    assert flights_in(store) == [1, 2]


async def test_a_table_that_was_created_again_at_its_place_is_left_alone(store):
    await small_files(store, 1, 2)
    properties = await table(store.backend).properties()
    await store.backend.delete(list(store.stored))
    await small_files(store, 8, 9)
    assert await compacted(store.backend, 1, properties=properties) == Compaction(yielded_to="")
    assert len((await table(store.backend).snapshot()).files) == 2
    store.check_no_bookkeeping()


async def test_rows_that_do_not_belong_into_their_partition_stay_where_they_are(staged):
    await small_files(staged, 1)
    async with begin(staged.backend) as job:
        path = f"month=1/{name_of(job)}"
        await mark(job, staged.backend, [path])
        file = publish(job.ticket, staged.backend, path, rows_of({2: [9]}))
        await job.commit([TaskReport(instant=job.instant, task=0, attempt=0, files=(file,))])
    with pytest.raises(CorruptObject, match="do not belong there by their values"):
        await compacted(staged.backend, 1)
    assert (len(staged.committed_files), flights_in(staged)) == (2, [1, 9])
    staged.check_at_rest()


async def test_a_merged_file_and_what_was_merged_explain_themselves(staged):
    await small_files(staged, 1, 2)
    old = min(staged.committed_files)
    found = await compacted(staged.backend, 1)
    assert found.result is not None
    [new] = staged.committed_files
    target = table(staged.backend)
    merged, gone = await target.explain(new), await target.explain(old)
    assert "It was made by merging 2 small files of its partition" in merged.why
    assert (len(merged.made_of), merged.rewritten_bytes) == (2, merged.bytes)
    assert f"merged with others by instant {found.result.instant}" in gone.why
    assert gone.filled_into == (new,)


async def test_a_large_merge_is_cut_at_the_maximum_and_its_files_carry_its_cost(staged):
    rows = pa.table({"flight": pa.array(range(40_000), pa.int64()), "month": pa.array([1] * 40_000, pa.int32())})
    for start in range(0, 40_000, 10_000):
        async with begin(staged.backend) as job:
            await job.commit([await write_in_thread(job, staged.backend, rows.slice(start, 10_000))])
    size = sum(len(staged.stored[path]) for path in staged.data_files)
    found = await compacted(
        staged.backend, 1, target_bytes=2 * size, sizing=type(NO_SIZING)(small_file_bytes=0, max_file_bytes=size // 2)
    )
    assert found.result is not None
    files = (await table(staged.backend).snapshot()).files
    assert len(files) >= 2
    assert sum(file.rows for file in files) == 40_000
    assert [file.rewritten_bytes for file in files] == [file.bytes for file in files]
    assert flights_in(staged) == list(range(40_000))
