"""What ``clean`` sweeps, and when."""

import msgpack
import pytest

from tallymark.engine.errors import CorruptObject, UnsupportedTable
from tallymark.engine.timeline.log import BODY_FOLDER
from tests.engine.writes.scene import (
    Store,
    begin,
    committed,
    flights,
    impatient,
    mark,
    name_of,
    publish,
    table,
    write_rows,
)
from tests.support.faulty import FaultyBackend, lost_request
from tests.support.loops import on_both_loops, on_virtual_time
from tests.table_invariants import (
    data_files,
    fences,
    no_bookkeeping_is_left,
    only_committed_files_exist,
    table_is_at_rest,
)

DAY_S = 24 * 3600.0


async def fenced(store: Store) -> str:
    """A committed write that has left one fence; returns the fence's path."""
    async with begin(store.backend) as job:
        path = f"month=1/{name_of(job, attempt=5)}"
        await mark(job, store.backend, [path])
        await job.commit([await write_rows(job, store.backend)])
    return path


@on_both_loops
async def test_fences_go_after_their_time_by_the_stores_clock_and_not_before():
    store = Store(has_staging=False)
    fence = await fenced(store)
    store.clock.now += DAY_S - 1
    assert (await table(store.backend).clean()).fences_swept == 0
    assert fence in data_files(store.objects)
    store.clock.now += 1
    assert (await table(store.backend).clean()).fences_swept == 1
    assert fence not in data_files(store.objects)
    assert fences(store.objects) == set()
    table_is_at_rest(store.objects)
    assert (await table(store.backend).clean()).fences_swept == 0


@on_virtual_time
async def test_a_zombie_runs_into_the_fence_until_it_is_swept():
    store = Store(has_staging=False)
    fence = await fenced(store)
    store.clock.now += DAY_S - 1
    async with begin(store.backend) as job:
        with pytest.raises(FileExistsError):
            publish(job.ticket, store.backend, fence, flights({1: 1}))
        await job.commit([])
    only_committed_files_exist(store.objects)


@on_virtual_time
async def test_fences_of_an_instant_that_is_not_decided_stay():
    """A commit that has fenced, and has not yet its entry."""
    store = Store(has_staging=False)
    storage = FaultyBackend(store.backend)
    async with begin(table(storage, commit=impatient(5))) as job:
        await mark(job, storage, [f"month=1/{name_of(job, attempt=5)}"])
        report = await write_rows(job, storage)
        storage.add(lost_request("get", "*/log/*"))
        with pytest.raises(OSError, match="nothing was written"):
            await job.commit([report])
        storage.heal()
        settings = impatient(zombie_after_s=0)
        assert (await table(store.backend, commit=settings).clean()).fences_swept == 0
        await job.commit([report])
        assert (await table(store.backend, commit=settings).clean()).fences_swept == 1
    table_is_at_rest(store.objects)


@on_virtual_time
async def test_an_interrupted_sweep_is_done_again():
    store = Store(has_staging=False)
    await fenced(store)
    store.clock.now += DAY_S
    storage = FaultyBackend(store.backend, lost_request("delete", ".hoodie/.tallymark/fence/*"))
    with pytest.raises(OSError, match="lost"):
        await table(storage).clean()
    assert fences(store.objects) != set()
    await table(store.backend).clean()
    assert fences(store.objects) == set()
    no_bookkeeping_is_left({path: data for path, data in store.objects.items() if "/beat/" not in path})


@pytest.mark.parametrize("data", [b"\xc1", b"", msgpack.packb("month=1"), msgpack.packb([1])])
@on_virtual_time
async def test_a_list_that_cannot_be_read_deletes_nothing(data):
    store = Store(has_staging=False)
    await fenced(store)
    (path,) = [path for path in store.objects if "/fence/" in path]
    await store.backend.put(path, data)
    store.clock.now += DAY_S
    before = data_files(store.objects)
    with pytest.raises(CorruptObject, match="is no list of fences"):
        await table(store.backend).clean()
    assert data_files(store.objects) == before


@on_virtual_time
async def test_markers_and_seals_that_landed_after_their_instants_end_are_dropped():
    store = Store(has_staging=False)
    result = await committed(store.backend)
    for path in (f".temp/{result.instant}/MARKERS5", f".tallymark/seal/{result.instant}"):
        await store.backend.put(f".hoodie/{path}", b"")
    await table(store.backend).clean()
    table_is_at_rest(store.objects)


@on_virtual_time
async def test_what_landed_under_an_instant_that_never_was_is_dropped_after_a_lease_and_not_before():
    """Within a lease it may be a writer's that is about to reserve the instant."""
    store = Store(has_staging=False)
    await committed(store.backend)
    late = ".hoodie/.temp/20261121000000569/MARKERS.type"
    await store.backend.put(late, b"DIRECT")
    await table(store.backend).clean()
    assert late in store.objects
    store.clock.pass_lease()
    await table(store.backend).clean()
    table_is_at_rest(store.objects)


@on_virtual_time
async def test_markers_of_open_instants_stay():
    store = Store(has_staging=False)
    async with begin(store.backend) as job:
        report = await write_rows(job, store.backend)
        await table(store.backend).clean()
        assert len(await table(store.backend).markers(job.instant)) == 2
        await job.commit([report])
        await table(store.backend).clean()
        assert await table(store.backend).open_instants() != []
    table_is_at_rest(store.objects)


@on_virtual_time
async def test_a_body_whose_entry_never_came_goes_in_time():
    store = Store(has_staging=False)
    await committed(store.backend)
    await store.backend.put(f"{BODY_FOLDER}/n1", b"large")
    store.clock.now += DAY_S - 1
    await table(store.backend).clean()
    assert f"{BODY_FOLDER}/n1" in store.objects
    store.clock.now += 1
    await table(store.backend).clean()
    table_is_at_rest(store.objects)


@on_both_loops
async def test_there_is_nothing_to_clean_where_there_is_no_table():
    store = Store(has_staging=True)
    with pytest.raises(UnsupportedTable, match="holds no table yet; the first write creates it"):
        await table(store.backend).clean()
    assert store.objects == {}
