from dataclasses import replace
from uuid import UUID

import pytest

from tallymark.engine.errors import InvalidRequest, UnsupportedTable
from tallymark.engine.inspection.file_sizes import SMALL_BYTES, FileSizes, SizeBucket, SizeIndex
from tallymark.engine.settings import SizingSettings
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.views.block import LiveSizes, pack_rows, sum_live
from tallymark.engine.views.row import FileRow
from tests.engine.jobs.scene import Store, committed, table
from tests.support.loops import on_both_loops

MIB = 1024 * 1024


def files(partition: str, *sizes: int) -> list[DataFile]:
    return [
        DataFile(partition, f"{UUID(int=number)}-0_0-0-0_20260101000000000.parquet", 10, size)
        for number, size in enumerate(sizes)
    ]


def sizes_of(*some: DataFile, **named: int) -> FileSizes:
    partitions = {file.partition for file in some}
    by_partition = {each: [file for file in some if file.partition == each] for each in partitions}
    return FileSizes.of({each: live_sizes(files) for each, files in by_partition.items()}, position=1, **named)


def live_sizes(some: list[DataFile]) -> LiveSizes:
    block = pack_rows(FileRow(file, 1) for file in some)
    return sum_live(block, some[0].partition, 1)


def test_a_file_of_the_size_up_to_which_appends_fill_is_not_small_and_one_a_byte_below_is():
    limit = SizingSettings().small_file_bytes
    found = sizes_of(*files("p=1", limit, limit - 1))
    assert (found.small_files, found.small_bytes) == (1, limit - 1)
    assert found.small_file_share == 0.5
    assert found.small_byte_share == pytest.approx(0.5)


def test_percentiles_are_sizes_of_files_that_are_there():
    found = sizes_of(*files("", *range(1, 101)))
    assert (found.p50, found.p95, found.largest) == (50, 95, 100)
    assert sizes_of(*files("", 7)).p95 == 7


def test_buckets_double_and_those_in_between_are_there_though_empty():
    found = sizes_of(*files("", 0, 1, 4, 5, 7, 8))
    buckets = [(0, 1, 0), (1, 1, 1), (2, 0, 0), (4, 3, 16), (8, 1, 8)]
    assert found.buckets == tuple(SizeBucket(*bucket) for bucket in buckets)
    assert [bucket.below for bucket in found.buckets] == [1, 2, 4, 8, 16]


def test_buckets_hold_every_file_and_byte_once():
    found = sizes_of(*files("", *(3**power for power in range(20))))
    assert sum(bucket.files for bucket in found.buckets) == found.files == 20
    assert sum(bucket.bytes for bucket in found.buckets) == found.bytes


def test_partitions_with_the_most_small_files_come_first():
    found = sizes_of(*files("p=1", 1), *files("p=2", 1, 1, SMALL_BYTES), *files("p=3", SMALL_BYTES))
    assert [(each.partition, each.files, each.small_files) for each in found.partitions] == [
        ("p=2", 3, 2),
        ("p=1", 1, 1),
        ("p=3", 1, 0),
    ]


def test_the_fewest_files_are_counted_partition_by_partition():
    assert sizes_of(*files("p=1", *[60 * MIB] * 4), *files("p=2", 1, 1)).fewest == 2 + 1
    assert sizes_of(*files("p=1", 300 * MIB)).fewest == 1, "as many as there are"


def test_what_was_rewritten_is_told_over_what_is_there():
    filled, new = files("p=1", 300, 100)
    found = sizes_of(replace(filled, rewritten_bytes=500), new)
    assert (found.rewritten_bytes, found.rewritten_per_byte) == (500, 1.25)


def test_nothing_has_sizes_too():
    found = sizes_of()
    assert (found.files, found.p95, found.fewest, found.buckets) == (0, 0, 0, ())
    assert (found.small_file_share, found.rewritten_per_byte) == (0.0, 0.0)


@on_both_loops
async def test_files_of_a_table_are_those_of_its_snapshot_and_a_prefix_holds_whole_names_only(staged):
    await committed(staged.backend, months={1: 3, 2: 2})
    await committed(staged.backend, months={2: 2, 20: 1})
    where = table(staged.backend)
    found = await where.files()
    assert (found.position, found.files, found.rows, found.bytes) == (2, 4, 8, (await where.snapshot()).bytes)
    assert found.partitions[0].partition == "month=2"
    assert [each.partition for each in (await where.files("month=2")).partitions] == ["month=2"]
    assert [(await where.files(prefix)).files for prefix in ("month=2/", "month=3")] == [2, 0]


@on_both_loops
@pytest.mark.parametrize("wrong", ["moth=1", "month", "month=1/day=2"])
async def test_a_path_below_which_no_partition_can_lie_is_refused(staged, wrong):
    await committed(staged.backend)
    with pytest.raises(InvalidRequest, match=r"partitioned by \['month'\]; its partitions are month=\.\.\."):
        await table(staged.backend).files(wrong)


@on_both_loops
async def test_files_of_nothing_are_refused():
    with pytest.raises(UnsupportedTable, match="holds no table yet"):
        await table(Store(has_staging=True).backend).files()
    with pytest.raises(InvalidRequest, match="small_below=-1"):
        await table(Store(has_staging=True).backend).files(small_below=-1)


@on_both_loops
async def test_an_index_reads_only_the_partitions_that_have_changed(store):
    await committed(store.backend)
    properties = await table(store.backend)._properties()
    index, handle = SizeIndex(), table(store.backend)._handle(properties)

    async def sizes() -> FileSizes:
        history = await handle.log.refresh()
        return await index.at(handle.view(properties).at(history.head))

    assert await sizes() == await table(store.backend).files()
    before = dict(index._known)
    await committed(store.backend, months={1: 5})
    assert await sizes() == await table(store.backend).files()
    changed = {each for each, known in index._known.items() if before[each][1] is not known[1]}
    assert changed == {"month=1"}


@on_both_loops
async def test_sizes_at_the_same_position_are_summed_once(store):
    await committed(store.backend)
    properties = await table(store.backend)._properties()
    index, handle = SizeIndex(), table(store.backend)._handle(properties)
    history = await handle.log.refresh()
    view = handle.view(properties).at(history.head)
    found = await index.at(view)
    assert await index.at(view) is found
    assert (await index.at(view, prefix="month=1")).rows == 3
    assert await index.at(view, small_below=1) == await table(store.backend).files(small_below=1)
    assert await index.at(view) == found
