"""Streams: rows of many callers share files and commits, and each call returns when its rows are committed."""

from collections.abc import Sequence
from typing import Any

import anyio
import anyio.lowlevel
import pyarrow as pa
import pytest
from anyio.abc import TaskGroup

from tallymark.backends.errors import Unavailable
from tallymark.engine.errors import Closed, CommitUnknown, InvalidRequest, TallymarkError, TryAgain
from tallymark.engine.settings import CommitSettings, StreamSettings, ViewSettings
from tallymark.engine.streams.stream import Stream
from tallymark.engine.table import Table, open_table
from tests.engine.jobs.scene import LEASE, Store
from tests.support.faulty import FaultyBackend, lost_request, slow
from tests.support.parquet import read_bytes

pytestmark = pytest.mark.usefixtures("loop")

FIELDS: list[tuple[str, pa.DataType]] = [("id", pa.int64()), ("place", pa.string())]
SCHEMA = pa.schema(FIELDS)
AT_ONCE = StreamSettings(flush_interval_s=0)


def rows(*ids: int, place: str = "here") -> pa.RecordBatch:
    return pa.record_batch([pa.array(ids, pa.int64()), pa.array([place] * len(ids))], schema=SCHEMA)


def opened(backend, **settings) -> Table:
    commit = CommitSettings(decision_timeout_s=2, retry_pause_s=0.05)
    return open_table("memory:", backend=backend, commit=settings.pop("commit", commit), lease=LEASE, **settings)


def ids(store: Store) -> list[int]:
    """Those that are committed, sorted."""
    found = [read_bytes(store.objects[path]) for path in store.committed_files]
    values: list[Any] = [value for each in found for value in each.column("id").to_pylist()]
    return sorted(values)


async def append_all(stream: Stream, batches: Sequence[pa.RecordBatch], **named) -> list[int | str]:
    """Append these at once. Return the position of each, or the name of its error."""
    outcomes: dict[int, int | str] = {}

    async def append(at: int, batch: pa.RecordBatch) -> None:
        try:
            outcomes[at] = await stream.append(batch, **named)
        except TallymarkError as error:
            outcomes[at] = type(error).__name__

    async with anyio.create_task_group() as tasks:
        for at, batch in enumerate(batches):
            tasks.start_soon(append, at, batch)
    return [outcomes[at] for at in range(len(batches))]


async def test_callers_share_files_and_commits_and_return_when_their_rows_are_committed(store):
    async with opened(store.backend).stream(schema=SCHEMA, settings=AT_ONCE) as stream:
        await stream.append(rows(0))
        assert ids(store) == [0]
        positions = await append_all(stream, [rows(number) for number in range(1, 101)])
        assert ids(store) == list(range(101))
        assert len(set(positions)) == len(store.committed_files) - 1 <= 3
    store.check_at_rest()


async def test_the_end_of_the_block_commits_what_waits(store):
    patient = StreamSettings(flush_interval_s=60)
    async with (
        anyio.create_task_group() as tasks,
        opened(store.backend).stream(schema=SCHEMA, settings=patient) as stream,
    ):
        await stream.append(rows(1))
        tasks.start_soon(stream.append, rows(2))
        await anyio.wait_all_tasks_blocked()
    assert ids(store) == [1, 2]
    with pytest.raises(Closed, match="has ended"):
        await stream.append(rows(3))
    store.check_at_rest()


async def test_a_block_that_fails_leaves_its_waiting_rows_and_tells_their_callers(store):
    told: list[int | str] = []
    patient = StreamSettings(flush_interval_s=60)

    async def wait(stream: Stream) -> None:
        told.extend(await append_all(stream, [rows(2)]))

    async def fail(tasks: TaskGroup) -> None:
        async with opened(store.backend).stream(schema=SCHEMA, settings=patient) as stream:
            await stream.append(rows(1))
            tasks.start_soon(wait, stream)
            await anyio.wait_all_tasks_blocked()
            raise RuntimeError("gone wrong")

    async with anyio.create_task_group() as tasks:
        with pytest.raises(RuntimeError, match="gone wrong"):
            await fail(tasks)
    assert (ids(store), told) == ([1], ["Closed"])
    store.check_at_rest()


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (pa.record_batch({"id": ["x"], "place": ["here"]}), "id"),
        (pa.record_batch({"id": [1]}), "place"),
        (rows(7, place="x" * 2000), "place"),
    ],
    ids=["of another type", "without a column", "in a partition that fits no path"],
)
async def test_bad_rows_fail_their_caller_and_no_other(store, bad, says):
    failed: list[str] = []

    async def append_bad(stream: Stream) -> None:
        with pytest.raises(InvalidRequest, match=says) as caught:
            await stream.append(bad)
        failed.append(str(caught.value))

    async with (
        opened(store.backend).stream(schema=SCHEMA, partition_by=["place"], settings=AT_ONCE) as stream,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(append_bad, stream)
        positions = await append_all(stream, [rows(number) for number in range(5)])
    assert all(isinstance(position, int) for position in positions)
    assert (ids(store), len(failed)) == (list(range(5)), 1)
    store.check_at_rest()


@pytest.mark.parametrize(
    ("named", "says"),
    [
        ({"producer": "p"}, "given together"),
        ({"sequence": 1}, "given together"),
        ({"producer": "p", "sequence": -1}, "0 or more"),
        ({"producer": "p", "sequence": "1"}, "0 or more"),
    ],
)
async def test_half_a_number_is_refused(unstaged, named, says):
    async with opened(unstaged.backend).stream(schema=SCHEMA) as stream:
        with pytest.raises(InvalidRequest, match=says):
            await stream.append(rows(1), **named)


async def test_memory_is_bounded_and_a_call_that_can_never_fit_is_refused(store):
    size = rows(1).nbytes
    small = StreamSettings(flush_interval_s=0, max_bytes=3 * size, worker_count=2, target_file_bytes=0)
    async with opened(store.backend).stream(schema=SCHEMA, settings=small) as stream:
        most = 0

        async def watch() -> None:
            nonlocal most
            while True:
                most = max(most, stream._held_bytes)
                await anyio.lowlevel.checkpoint()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            await append_all(stream, [rows(number) for number in range(40)])
            tasks.cancel_scope.cancel()
        with pytest.raises(InvalidRequest, match=rf"max_bytes={3 * size}"):
            await stream.append(rows(*range(100)))
    assert (ids(store), most) == (list(range(40)), 3 * size)


async def test_a_store_that_refuses_a_commit_fails_its_callers_and_later_ones_succeed(store):
    storage = FaultyBackend(store.backend)
    async with opened(storage).stream(schema=SCHEMA, settings=AT_ONCE) as stream:
        await stream.append(rows(1))
        storage.add(lost_request("put_new", ".hoodie/.tallymark/open/*"))
        assert await append_all(stream, [rows(2), rows(3)]) == [Unavailable.__name__] * 2
        storage.heal()
        await stream.append(rows(4))
    assert ids(store) == [1, 4]
    store.clock.pass_lease()
    await opened(store.backend).clean()
    store.check_at_rest()


async def test_an_unclear_commit_is_told_as_such_and_its_producer_may_append_again(store):
    storage = FaultyBackend(store.backend)
    async with opened(storage).stream(schema=SCHEMA, settings=AT_ONCE) as stream:
        await stream.append(rows(1), producer="p", sequence=0)
        storage.add(lost_request("put_new", "*/log/*"))
        assert await append_all(stream, [rows(2)], producer="p", sequence=1) == [CommitUnknown.__name__]
        storage.heal()
        await stream.append(rows(2), producer="p", sequence=1)
        await stream.append(rows(3), producer="p", sequence=2)
    assert ids(store) == [1, 2, 3]


async def test_a_flush_that_fails_takes_no_earlier_one_of_its_producer_along(store):
    storage = FaultyBackend(store.backend, slow("put_new", 1.5, "*/log/*"))
    found: list[int | str] = []

    async def append_first(stream: Stream) -> None:
        found.extend(await append_all(stream, [rows(0)], producer="p", sequence=0))

    async with opened(storage).stream(schema=SCHEMA, settings=AT_ONCE) as stream, anyio.create_task_group() as tasks:
        tasks.start_soon(append_first, stream)
        await anyio.sleep(1)
        storage.add(lost_request("put_new", ".hoodie/.tallymark/open/*"))
        assert await append_all(stream, [rows(1)], producer="p", sequence=1) == [Unavailable.__name__]
        assert not found, "it is being committed"
        storage.heal()
    assert found == [1]
    async with opened(store.backend).stream(schema=SCHEMA, settings=AT_ONCE) as stream:
        for number in (0, 1):
            await stream.append(rows(number), producer="p", sequence=number)
    assert ids(store) == [0, 1]


async def test_a_number_is_written_once_across_restarts_and_checkpoints(store):
    often = {"views": ViewSettings(checkpoint_entries=1), "commit": CommitSettings(log_entry_count=1)}
    for _ in range(3):
        async with opened(store.backend, **often).stream(schema=SCHEMA, settings=AT_ONCE) as stream:
            for number in range(4):
                await stream.append(rows(number), producer="p", sequence=number)
            await stream.append(rows(100), producer="other", sequence=7)
    assert ids(store) == [0, 1, 2, 3, 100]
    store.check_at_rest()


async def test_a_number_that_is_under_way_is_waited_for_and_one_out_of_order_is_refused(store):
    async with opened(store.backend).stream(schema=SCHEMA, settings=AT_ONCE) as stream:
        first, again, before, after = await _at_once(stream, (5, 5, 4, 6))
        assert first == again
        assert before == "InvalidRequest"
        assert isinstance(after, int)
    assert ids(store) == [0, 3]
    store.check_at_rest()


async def _at_once(stream: Stream, numbers: Sequence[int]) -> list[int | str]:
    outcomes: dict[int, int | str] = {}

    async def append(at: int, number: int) -> None:
        outcomes.update({at: (await append_all(stream, [rows(at)], producer="p", sequence=number))[0]})

    async with anyio.create_task_group() as tasks:
        for at, number in enumerate(numbers):
            tasks.start_soon(append, at, number)
            await anyio.lowlevel.checkpoint()
    return [outcomes[at] for at in range(len(numbers))]


async def test_what_another_stream_of_the_producer_has_committed_is_not_written_again(store):
    async with (
        opened(store.backend).stream(schema=SCHEMA, settings=AT_ONCE) as stale,
        opened(store.backend).stream(schema=SCHEMA, settings=AT_ONCE) as stream,
    ):
        for number in range(3):
            await stream.append(rows(number), producer="p", sequence=number)
        with pytest.raises(TryAgain, match="up to 2 by another stream"):
            await stale.append(rows(1), producer="p", sequence=1)
        await stale.append(rows(1), producer="p", sequence=1)
        await stale.append(rows(3), producer="p", sequence=3)
    assert ids(store) == [0, 1, 2, 3]
    store.check_at_rest()


async def test_a_stream_goes_on_with_the_table_that_another_has_made_at_its_place(store):
    target = opened(store.backend)
    async with target.stream(schema=SCHEMA, settings=AT_ONCE) as stream:
        await stream.append(rows(1))
        with anyio.fail_after(10):
            while any("/open/" in path for path in store.stored):  # noqa: ASYNC110 the end of its job has no event
                await anyio.sleep(0.01)
        await store.backend.delete(list(store.stored))
        async with opened(store.backend).write(schema=SCHEMA, mode="append") as job:
            await job.commit([])
        await stream.append(rows(2))
    [file] = (await target.snapshot()).files
    assert read_bytes(store.stored[file.path]).column("id").to_pylist() == [2]


async def test_a_txn_is_refused(unstaged):
    with pytest.raises(InvalidRequest, match="producer and sequence"):
        async with opened(unstaged.backend).stream(schema=SCHEMA, txn="a:1"):
            raise AssertionError("it has begun")
