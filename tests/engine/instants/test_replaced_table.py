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


AN_OLDER_COPY_THAT_OTHERS_CONTINUED = (2, 1, 1)
CREATED_AGAIN = [(before, 0, after) for before in (0, 1, 3) for after in (1, 2, 3, 5)]


@pytest.mark.parametrize(("before", "kept", "after"), [AN_OLDER_COPY_THAT_OTHERS_CONTINUED, *CREATED_AGAIN])
async def test_a_commit_into_another_life_of_its_table_is_void_and_its_writer_learns_it(store, before, kept, after):
    copies: list[dict] = [{}]
    for _ in range(before):
        await committed(store.backend)
        copies.append(dict(store.backend._objects))
    async with begin(store.backend, markers=MarkerSettings()) as job:
        report = await write_rows(job, store.backend)
        replace_all(store, copies[kept])
        for _ in range(after):
            await committed(store.backend)
        with pytest.raises(TableReplaced, match=None if kept else "created again"):
            await job.commit([report])
    assert not any(job.instant in path for path in store.objects if path.endswith(".parquet"))
    for _ in range(before + 2):
        await committed(store.backend)
    assert (await table(store.backend).snapshot()).position >= kept + after + before + 2
    assert len(store.decisions) == kept + after + before + 2
    assert job.instant not in store.decisions


async def test_who_remembers_that_its_txn_was_committed_learns_that_the_table_is_gone(store):
    once = {"txn": "night:1", "markers": MarkerSettings()}
    async with begin(store.backend, **once) as one, begin(store.backend, **once) as other:
        reports = [await write_rows(job, store.backend) for job in (one, other)]
        await one.commit(reports[:1])
        await other._lease.renew()  # this has read it
        replace_all(store, {})
        with pytest.raises(TableReplaced):
            await other.commit(reports[1:])


async def test_a_commit_where_the_table_was_removed_is_refused(store):
    await committed(store.backend)
    async with begin(store.backend, markers=MarkerSettings()) as job:
        report = await write_rows(job, store.backend)
        replace_all(store, {})
        with pytest.raises(TableReplaced):
            await job.commit([report])
    assert not any(path.endswith(".parquet") for path in store.objects)


@pytest.mark.no_cover
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


async def test_a_checkpoint_of_a_former_table_ends_no_instant_of_the_one_made_after_it(store):
    await committed(store.backend)
    await table(store.backend).checkpoint()
    former = {path: data for path, data in store.objects.items() if "/checkpoint/" in path}
    replace_all(store, {})
    async with begin(store.backend) as job:
        for path, data in former.items():
            await store.backend.put(path, data)
        await job.commit([await write_rows(job, store.backend)])
    assert (await table(store.backend).snapshot()).position == 1
