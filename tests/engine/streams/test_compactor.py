"""The files of a stream's flushes are merged behind them, and nothing of that reaches a caller."""

import logging
from typing import Any

import anyio
import pytest
from anyio.abc import TaskStatus

from tallymark.backends.errors import Unavailable
from tallymark.backends.local import LocalBackend
from tallymark.engine.settings import CommitSettings, StreamSettings, TaskSettings, ViewSettings
from tallymark.engine.streams import compactor
from tallymark.engine.streams.stream import Stream
from tests import table_invariants
from tests.engine.jobs.scene import Store
from tests.engine.streams.test_stream import SCHEMA, opened, rows
from tests.support.faulty import FaultyBackend, hanging, lost_request, refused
from tests.support.hudi_table import rows_by_hudi
from tests.support.parquet import read_bytes

pytestmark = pytest.mark.usefixtures("loop")


@pytest.fixture
def loop() -> str:
    """Merges depend on no loop: the other one has the tests of streams."""
    return "trio"


def merging(**named) -> StreamSettings:
    return StreamSettings(**{"flush_interval_s": 0, "target_file_bytes": 100_000, **named})


async def files_of(store: Store) -> list[str]:
    """The files of the table, whose commits may be members of groups."""
    return [file.path for file in (await opened(store.backend).snapshot()).files]


async def ids_in(store: Store) -> list[int]:
    """Those that are committed, sorted."""
    found = [read_bytes(store.stored[path]) for path in await files_of(store)]
    values: list[Any] = [value for each in found for value in each.column("id").to_pylist()]
    return sorted(values)


async def check_at_rest(store: Store) -> None:
    """Check that nothing is left but the files of the table, which readers of the Hudi format see alike."""
    files = set(await files_of(store))
    table_invariants.no_bookkeeping_is_left(store.objects)
    assert table_invariants.hudi_files(store.stored) - store.fences == files
    assert store.data_files - store.fences == files


async def until_merged(store: Store, below: int) -> None:
    """Wait until the table has fewer files, since merges have no event."""
    with anyio.fail_after(30):
        while len(await files_of(store)) >= below:  # noqa: ASYNC110
            await anyio.sleep(0.01)


async def compactions(store: Store) -> int:
    return sum(entry.is_compaction for _, entry in await opened(store.backend).timeline())


async def append_each(stream: Stream, *numbers: int, place: str = "here") -> None:
    for number in numbers:
        await stream.append(rows(number, place=place))


async def test_files_are_merged_behind_the_flushes_and_the_rest_at_the_end(store):
    target = opened(store.backend)
    async with target.stream(schema=SCHEMA, partition_by=["place"], settings=merging()) as stream:
        for number in range(40):
            await append_each(stream, number, place=f"place {number % 2}")
        await until_merged(store, below=40)
        assert await compactions(store) > 0
        assert await ids_in(store) == list(range(40))
    assert len(await files_of(store)) == 2
    assert await ids_in(store) == list(range(40))
    assert len((await target.snapshot()).files) == 2
    await check_at_rest(store)


async def test_a_table_on_disk_is_read_right_by_readers_of_the_hudi_format(tmp_path):
    target = opened(LocalBackend(tmp_path))
    async with target.stream(schema=SCHEMA, partition_by=["place"], settings=merging()) as stream:
        for number in range(40):
            await append_each(stream, number, place=f"place {number % 2}")
    assert len(list(tmp_path.glob("place=*/*.parquet"))) == len((await target.snapshot()).files) == 2
    assert rows_by_hudi(tmp_path).sort_by("id")["id"].to_pylist() == list(range(40))


async def test_older_positions_keep_their_files_where_readers_have_a_table(staged):
    target = opened(staged.backend)
    async with target.stream(schema=SCHEMA, readers="table", settings=merging()) as stream:
        positions = [await stream.append(rows(number)) for number in range(20)]
    assert len((await target.snapshot()).files) == 1
    snapshots = [await target.snapshot(position) for position in positions]
    assert [sum(file.rows for file in each.files) for each in snapshots] == list(range(1, 21))
    assert all(file.path in staged.stored for each in snapshots for file in each.files)


@pytest.mark.parametrize(
    "off", [{"target_file_bytes": 0}, {"final_merge_s": 0}], ids=["without a target", "without time at the end"]
)
async def test_nothing_is_merged_where_it_is_switched_off(staged, off):
    async with opened(staged.backend).stream(schema=SCHEMA, settings=merging(**off)) as stream:
        await append_each(stream, *range(5))
    assert (len(await files_of(staged)), await compactions(staged)) == (5, 0)
    await check_at_rest(staged)


async def test_a_quiet_partition_is_merged_while_the_stream_runs(staged):
    settings = merging(quiet_s=0.1, final_merge_s=0)
    async with opened(staged.backend).stream(schema=SCHEMA, settings=settings) as stream:
        await append_each(stream, 1, 2, 3)
        await until_merged(staged, below=2)
    assert await ids_in(staged) == [1, 2, 3]
    await check_at_rest(staged)


async def test_a_storage_that_refuses_merges_fails_no_append_and_is_logged(staged, caplog):
    storage = FaultyBackend(staged.backend)
    storage.add(refused("get", "*.parquet", error=Unavailable("no answer")))
    caplog.set_level(logging.INFO, logger="tallymark.engine.streams")
    async with opened(storage).stream(schema=SCHEMA, settings=merging()) as stream:
        await append_each(stream, *range(40))
    assert "compaction.failed" in caplog.text
    assert "no answer" in caplog.text
    assert (len(await files_of(staged)), await ids_in(staged)) == (40, list(range(40)))
    await check_at_rest(staged)


async def test_a_defect_of_a_compaction_fails_no_append_and_is_logged_with_its_stack(staged, caplog, monkeypatch):
    async def broken(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr(compactor, "compact", broken)
    async with opened(staged.backend).stream(schema=SCHEMA, settings=merging()) as stream:
        await append_each(stream, *range(20))
    assert "compaction.failed" in caplog.text
    assert "ZeroDivisionError" in caplog.text
    assert (len(await files_of(staged)), await ids_in(staged)) == (20, list(range(20)))


async def test_the_end_waits_for_its_limit_and_leaves_the_rest_in_small_files(store, caplog):
    caplog.set_level(logging.INFO, logger="tallymark.engine.streams")
    storage = FaultyBackend(store.backend)
    patient = TaskSettings(marker_wait_s=0.2)
    async with opened(storage).stream(schema=SCHEMA, settings=merging(final_merge_s=0.3), tasks=patient) as stream:
        await append_each(stream, 1, 2, 3)
        storage.add(hanging("list", ".hoodie/.tallymark/open"))
    assert "compaction.unfinished" in caplog.text
    assert await ids_in(store) == [1, 2, 3]
    assert await compactions(store) == 0
    storage.heal()
    await check_at_rest(store)


async def test_the_limit_also_ends_a_merge_that_waits_for_a_file(store, caplog):
    caplog.set_level(logging.INFO, logger="tallymark.engine.streams")
    storage = FaultyBackend(store.backend)
    async with opened(storage).stream(schema=SCHEMA, settings=merging(final_merge_s=0.5)) as stream:
        await append_each(stream, 1, 2, 3)
        storage.add(hanging("get", "*.parquet"))
    assert "compaction.unfinished" in caplog.text
    assert "compaction.failed" not in caplog.text
    storage.heal()
    assert (await ids_in(store), await compactions(store)) == ([1, 2, 3], 0)
    await check_at_rest(store)


async def test_a_block_that_fails_ends_a_compaction_and_leaves_nothing_of_it(store):
    async def fail() -> None:
        async with opened(store.backend).stream(schema=SCHEMA, settings=merging()) as stream:
            await append_each(stream, *range(16))
            raise RuntimeError("gone wrong")

    with pytest.raises(RuntimeError, match="gone wrong"):
        await fail()
    assert await ids_in(store) == list(range(16))
    await check_at_rest(store)


async def test_merges_wait_for_an_open_overwrite_which_commits(store, monkeypatch, caplog):
    monkeypatch.setattr(compactor, "YIELD_PAUSE_S", 0.01)
    caplog.set_level(logging.INFO, logger="tallymark.engine.streams")
    target, may_commit = opened(store.backend), anyio.Event()

    async def overwrite(*, task_status: TaskStatus[None]) -> None:
        async with opened(store.backend).write(mode="overwrite", schema=SCHEMA) as job:
            task_status.started()
            await may_commit.wait()
            await job.commit([])

    async with (
        anyio.create_task_group() as tasks,
        target.stream(schema=SCHEMA, settings=merging()) as stream,
    ):
        await stream.append(rows(1))
        await tasks.start(overwrite)
        await append_each(stream, *range(2, 40))
        while "compaction.yielded" not in caplog.text:  # noqa: ASYNC110
            await anyio.sleep(0.01)
        assert await compactions(store) == 0
        may_commit.set()
        await until_merged(store, below=38)
    assert await ids_in(store) == list(range(2, 40))
    assert len(await files_of(store)) == 1
    await check_at_rest(store)


async def test_an_open_overwrite_at_the_end_leaves_the_files_to_a_later_stream(staged):
    target = opened(staged.backend)
    async with target.write(mode="overwrite", schema=SCHEMA) as job:
        async with target.stream(schema=SCHEMA, settings=merging()) as stream:
            await append_each(stream, 1, 2)
        assert (len(await files_of(staged)), await compactions(staged)) == (2, 0)
        await job.commit([])
    async with target.stream(schema=SCHEMA, settings=merging()) as stream:
        await stream.append(rows(3))
    assert (len(await files_of(staged)), await ids_in(staged)) == (1, [1, 2, 3])
    await check_at_rest(staged)


async def test_two_streams_of_one_table_merge_beside_each_other(store):
    async with (
        opened(store.backend).stream(schema=SCHEMA, settings=merging()) as one,
        opened(store.backend).stream(schema=SCHEMA, settings=merging()) as other,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(append_each, one, *range(30))
        tasks.start_soon(append_each, other, *range(30, 60))
    assert await ids_in(store) == list(range(60))
    assert len(await files_of(store)) < 30
    await check_at_rest(store)


async def test_a_merged_file_of_a_table_with_a_key_has_the_range_of_its_keys(staged):
    target = opened(staged.backend)
    async with target.stream(schema=SCHEMA, record_key="id", readers="table", settings=merging()) as stream:
        await append_each(stream, *range(3, 9))
    [file] = (await target.snapshot()).files
    assert [bounds.nulls for bounds in file.bounds] == [0]
    async with target.write(mode="upsert") as job:
        assert job.ticket.key is not None
    assert await ids_in(staged) == list(range(3, 9))


async def test_rows_of_a_partition_that_the_stream_names_are_merged_in_it(staged):
    target = opened(staged.backend)
    async with target.stream(
        schema=SCHEMA, partition_by=["place"], partition={"place": "here"}, settings=merging()
    ) as stream:
        await append_each(stream, 1, 2, 3)
    [file] = await files_of(staged)
    assert file.startswith("place=here/")
    assert await ids_in(staged) == [1, 2, 3]
    await check_at_rest(staged)


async def test_a_lost_request_in_a_compaction_is_retried_with_the_next_files(staged):
    storage = FaultyBackend(staged.backend)
    async with opened(storage).stream(schema=SCHEMA, settings=merging()) as stream:
        storage.add(lost_request("put", "*/FILLS", nth=1))
        await append_each(stream, *range(40))
    assert (len(await files_of(staged)), await ids_in(staged)) == (1, list(range(40)))
    await check_at_rest(staged)


async def test_a_log_that_another_process_has_archived_since_is_read_again(staged):
    """The stream has read it from a checkpoint that newer ones have replaced."""
    often = {"views": ViewSettings(checkpoint_entries=1), "commit": CommitSettings(log_entry_count=4)}
    rarely = {"views": ViewSettings(checkpoint_entries=10_000)}
    alone = merging(target_file_bytes=0)
    async with opened(staged.backend, **often).stream(schema=SCHEMA, settings=alone) as before:
        await append_each(before, *range(10))
    async with (
        opened(staged.backend, **often).stream(schema=SCHEMA, settings=alone) as other,
        opened(staged.backend, **rarely).stream(schema=SCHEMA, settings=merging()) as stream,
    ):
        for number in range(10, 34, 4):
            await append_each(other, number, number + 1, number + 2)
            await stream.append(rows(number + 3))
    assert len(await files_of(staged)) == 1
    assert await ids_in(staged) == list(range(34))
