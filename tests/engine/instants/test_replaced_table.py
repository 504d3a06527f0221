"""A job that outlives its table commits nothing into the one that was created again, or restored, at its place."""

import pytest

from tallymark.engine.errors import CorruptObject, TableReplaced
from tallymark.engine.instants.rollback import roll_back
from tallymark.engine.settings import MarkerSettings
from tests.engine.jobs.scene import Store, begin, committed, die, table, write_rows
from tests.support.faulty import FaultyBackend
from tests.table_invariants import committed_files, data_files


def replace_all(store: Store, objects: dict) -> None:
    store.backend._objects.clear()
    store.backend._objects.update(objects)


@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize("after", [1, 2, 3, 5])
async def test_a_commit_into_a_table_that_was_created_again_is_void_and_its_writer_learns_it(store, before, after):
    for _ in range(before):
        await committed(store.backend)
    async with begin(store.backend, markers=MarkerSettings()) as job:
        report = await write_rows(job, store.backend)
        replace_all(store, {})
        for _ in range(after):
            await committed(store.backend)
        with pytest.raises(TableReplaced, match="created again"):
            await job.commit([report])
    for _ in range(before + 2):
        await committed(store.backend)
    assert (await table(store.backend).snapshot()).position >= after + before + 2
    assert job.instant not in store.decisions
    assert not any(job.instant in path for path in store.objects if path.endswith(".parquet"))


async def test_a_commit_into_an_older_copy_that_others_have_continued_is_void(store):
    await committed(store.backend)
    copy = dict(store.backend._objects)
    await committed(store.backend)
    async with begin(store.backend, markers=MarkerSettings()) as job:
        report = await write_rows(job, store.backend)
        replace_all(store, copy)
        await committed(store.backend)
        with pytest.raises(TableReplaced):
            await job.commit([report])
    await committed(store.backend)
    assert job.instant not in store.decisions
    assert len(store.decisions) == 3


async def test_a_commit_where_the_table_was_removed_is_refused(store):
    await committed(store.backend)
    async with begin(store.backend, markers=MarkerSettings()) as job:
        report = await write_rows(job, store.backend)
        replace_all(store, {})
        with pytest.raises(TableReplaced):
            await job.commit([report])
    assert not any(path.endswith(".parquet") for path in store.objects)


async def test_a_damaged_entry_is_a_corrupt_object_whichever_bit_is_flipped(store):
    await committed(store.backend)
    path = ".hoodie/.tallymark/log/00000000000000000001"
    whole, *rest = store.backend._objects[path]
    for bit in range(0, len(whole) * 8, 5):
        flipped = bytearray(whole)
        flipped[bit // 8] ^= 1 << bit % 8
        store.backend._objects[path] = (bytes(flipped), *rest)
        with pytest.raises(CorruptObject, match="log/0"):
            await table(store.backend).snapshot()


async def test_a_process_with_another_log_does_not_roll_back_a_commit_of_the_table_that_was_created_again(store):
    """It has read the former log; the writer it treats as dead has committed, and died before its last steps."""
    await committed(store.backend)
    former = table(store.backend)
    properties = await former.properties()
    assert properties is not None
    handle = former._handle(properties)
    await handle.log.refresh()
    replace_all(store, {})
    await committed(store.backend)
    dying = FaultyBackend(store.backend)
    async with begin(dying, markers=MarkerSettings()) as job:
        await job.commit([await write_rows(job, dying)])
        die(dying)
    found = next(each for each in await table(store.backend).open_instants() if each.instant == job.instant)
    with pytest.raises(TableReplaced):
        await roll_back(handle, properties, found)
    store.clock.pass_lease()
    await committed(store.backend)
    assert store.decisions[job.instant]["kind"] == "commit"
    assert committed_files(store.objects) == set(data_files(store.objects))
