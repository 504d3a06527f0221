"""What ``clean`` sweeps, and when."""

from dataclasses import replace

import msgpack
import pytest

from tallymark.engine.errors import CommitUnknown, CorruptObject, UnsupportedTable
from tallymark.engine.timeline.lease import HEARTBEAT_FOLDER
from tallymark.engine.timeline.log import BODY_FOLDER
from tallymark.engine.timeline.registration import registration_path
from tallymark.engine.timeline.reservation import OPEN_FOLDER, Reservation
from tallymark.engine.timeline.writer_identity import WriterIdentity
from tests.engine.jobs.scene import (
    Store,
    begin,
    committed,
    die,
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
    log_entries,
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
        assert (await table(store.backend, commit=settings).clean()).fences_swept == 0, "it is not over yet"
    assert (await table(store.backend, commit=settings).clean()).fences_swept == 1
    table_is_at_rest(store.objects)


@on_virtual_time
async def test_fences_of_a_commit_that_stood_still_before_its_entry_stay_for_a_day_after_it():
    """They are as young as that entry, however old their list is."""
    store = Store(has_staging=False)
    storage = FaultyBackend(store.backend)
    async with begin(table(storage, commit=impatient(5))) as job:
        await mark(job, storage, [f"month=1/{name_of(job, attempt=5)}"])
        report = await write_rows(job, storage)
        storage.add(lost_request("get", "*/log/*"))
        with pytest.raises(OSError, match="nothing was written"):
            await job.commit([report])
        storage.heal()
        store.clock.now += DAY_S + 1
        await job.commit([report])
    assert (await table(store.backend).clean()).fences_swept == 0
    store.clock.now += DAY_S - 1
    assert (await table(store.backend).clean()).fences_swept == 0
    store.clock.now += 1
    assert (await table(store.backend).clean()).fences_swept == 1
    table_is_at_rest(store.objects)


@on_virtual_time
async def test_a_writer_that_reserves_what_a_clean_takes_for_left_behind_keeps_it():
    """Of an instant that nobody knows age only says that it is worth a try: whoever reserves it first has it."""
    store = Store(has_staging=False)
    await committed(store.backend)
    late = "20261121090000000"
    await store.backend.put(f".hoodie/.temp/{late}/MARKERS.type", b"DIRECT")
    store.clock.pass_lease()

    class Meanwhile:
        """Its writer goes on, once the clean has seen that nobody has reserved the instant."""

        has_come = False

        def __getattr__(self, name):
            return getattr(store.backend, name)

        async def put(self, path, data):
            await store.backend.put(path, data)
            if self.has_listed and not self.has_come:
                self.has_come = True
                await store.backend.put_new(f"{OPEN_FOLDER}/{late}", reservation.encode())

        has_listed = False

        async def list(self, directory):
            self.has_listed |= directory == ".hoodie/.temp"
            async for entry in store.backend.list(directory):
                yield entry

    reservation = Reservation(
        instant=late, nonce="n", writer=WriterIdentity.here(), marker_kind="direct", operation="append", expiry_s=120
    )
    meanwhile = Meanwhile()
    await table(meanwhile).clean()
    assert meanwhile.has_come
    assert f".hoodie/.temp/{late}/MARKERS.type" in store.objects
    assert store.objects[f"{OPEN_FOLDER}/{late}"] == reservation.encode()


@on_virtual_time
async def test_a_beat_that_nobody_has_reserved_goes_after_a_lease_and_its_instant_is_used_up():
    """A writer that comes back to it finds the log past it."""
    store = Store(has_staging=False)
    await committed(store.backend)
    late = "20261121090000000"
    await store.backend.put(f"{HEARTBEAT_FOLDER}/{late}", b"")
    await table(store.backend).clean()
    assert f"{HEARTBEAT_FOLDER}/{late}" in store.objects
    store.clock.pass_lease()
    await table(store.backend).clean()
    assert [(entry["kind"], entry["instant"]) for entry in log_entries(store.objects)[1:]] == [("rollback", late)]
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
    with pytest.raises(CorruptObject, match="is not a list of fences"):
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
async def test_numbers_that_landed_once_more_go_with_the_instant_that_did_so_too():
    """Its writer had tried two numbers before it began: one clean is enough for both."""
    store = Store(has_staging=False)
    async with begin(store.backend) as job:
        late = {path: data for path, data in store.objects.items() if f"/open/{job.instant}" in path}
        await job.commit([await write_rows(job, store.backend)])
    await committed(store.backend)
    ((path, data),) = late.items()
    await store.backend.put(path, data)
    for number in (1, 2):
        await store.backend.put(
            registration_path(number), replace(Reservation.decode(data, source=path), registration=number).encode()
        )
    store.clock.pass_lease()
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


@pytest.fixture
def small_bodies(monkeypatch):
    """Every entry of a commit is put as a body."""
    monkeypatch.setattr("tallymark.engine.timeline.log.BODY_BYTES", 200)


def bodies(store: Store) -> set[str]:
    return {path for path in store.objects if path.startswith(BODY_FOLDER)}


@on_virtual_time
async def test_a_body_stays_for_a_writer_that_lives_and_commits_again_however_old_it_is(small_bodies):
    store = Store(has_staging=False)
    storage = FaultyBackend(store.backend)
    async with begin(table(storage, commit=impatient(5))) as job:
        report = await write_rows(job, storage)
        storage.add(lost_request("put_new", "*/log/*"))
        with pytest.raises(CommitUnknown):
            await job.commit([report])
        storage.heal()
        store.clock.now += DAY_S + 1
        await job._lease.renew()
        await table(store.backend).clean()
        result = await job.commit([report])
    assert (await table(store.backend).snapshot()).position == result.position
    assert len(bodies(store)) == 1
    table_is_at_rest(store.objects)


@on_virtual_time
async def test_a_body_whose_instant_was_rolled_back_goes_however_young_it_is(small_bodies):
    store = Store(has_staging=False)
    await committed(store.backend)
    kept = bodies(store)
    storage = FaultyBackend(store.backend, lost_request("put_new", "*/log/*"))
    async with begin(table(storage, commit=impatient(5))) as job:
        report = await write_rows(job, storage)
        with pytest.raises(CommitUnknown):
            await job.commit([report])
        die(storage)
    assert len(bodies(store)) == 2
    store.clock.pass_lease()
    await table(store.backend).clean()
    assert bodies(store) == kept
    table_is_at_rest(store.objects)


@on_virtual_time
async def test_the_body_of_a_rollback_stays_as_long_as_the_log(monkeypatch):
    """None is as large, but by what its entry may tell in time."""
    monkeypatch.setattr("tallymark.engine.timeline.log.BODY_BYTES", 100)
    store = Store(has_staging=False)
    await committed(store.backend)
    async with begin(store.backend) as job:
        await write_rows(job, store.backend)
    kept = bodies(store)
    assert len(kept) == 2
    await table(store.backend).clean()
    assert bodies(store) == kept
    table_is_at_rest(store.objects)


@on_virtual_time
async def test_of_two_bodies_of_a_commit_the_one_that_its_entry_names_stays(small_bodies):
    store = Store(has_staging=False)
    result = await committed(store.backend)
    kept = bodies(store)
    await store.backend.put(f"{BODY_FOLDER}/{result.instant}/other", b"an earlier try")
    await table(store.backend).clean()
    assert bodies(store) == kept


@on_virtual_time
async def test_a_body_of_an_earlier_release_stays():
    """Its name does not say of which instant it is."""
    store = Store(has_staging=False)
    await committed(store.backend)
    await store.backend.put(f"{BODY_FOLDER}/n1", b"large")
    store.clock.now += 100 * DAY_S
    await table(store.backend).clean()
    assert bodies(store) == {f"{BODY_FOLDER}/n1"}


@on_both_loops
async def test_there_is_nothing_to_clean_where_there_is_no_table():
    store = Store(has_staging=True)
    with pytest.raises(UnsupportedTable, match="holds no table yet; the first write creates it"):
        await table(store.backend).clean()
    assert store.objects == {}
