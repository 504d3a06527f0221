"""Reading under a lease: while the block lasts no clean takes a file of its snapshot."""

from dataclasses import replace

import anyio
import pytest
import trio

from tallymark.engine.errors import InvalidRequest, TryAgain, UnsupportedTable
from tallymark.engine.instants.finish import drop_bookkeeping
from tallymark.engine.instants.reserve import reserve
from tallymark.engine.instants.rollback import decide
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.jobs.prepare import read_properties
from tallymark.engine.maintenance.clean import CleanResult
from tallymark.engine.maintenance.expire import CleanScan, Due, expire
from tallymark.engine.settings import CommitSettings, ViewSettings
from tallymark.engine.timeline.log import entry_path
from tallymark.engine.timeline.reader_lease import READ_FOLDER, Reader
from tallymark.engine.timeline.reservation import OPEN_FOLDER, Reservation
from tallymark.engine.timeline.writer_identity import WriterIdentity
from tests.engine.jobs.scene import LEASE, Store, begin, committed, die, table, write_rows
from tests.support.faulty import FaultyBackend, lost_request, refused, slow
from tests.support.loops import on_both_loops
from tests.table_invariants import table_is_at_rest

HOUR_S = 3600.0


async def overwritten(store: Store, times: int = 1) -> None:
    """A table of one month that was replaced so often; positions 1 to times + 1."""
    await committed(store.backend, months={1: 1}, readers="table")
    for _ in range(times):
        await committed(store.backend, "overwrite", {1: 1})


@pytest.fixture
def replaced(unstaged: Store) -> Store:
    """A table of one month that was replaced once."""
    trio.run(overwritten, unstaged)
    return unstaged


def leases(store: Store) -> set[str]:
    return {path for path in store.objects if path.startswith(READ_FOLDER)}


def paths_of(snapshot) -> set[str]:
    return {file.path for file in snapshot.files}


ELSEWHERE = WriterIdentity(host="elsewhere", boot_id="b", pid_namespace="p", pid=7, started="7")


async def leased(store: Store, position: int, process: WriterIdentity = ELSEWHERE) -> str:
    """A lease of a reader, on another machine; returns its path."""
    reader = Reader(nonce=f"at{position}", position=position, process=process, expiry_s=LEASE.expiry_s)
    await store.backend.put(reader.path, reader.encode())
    return reader.path


async def cleaned(store: Store, **named) -> CleanResult:
    """Of a clean that keeps nothing but what readers need."""
    return await table(store.backend).clean(retain_hours=0, **named)


async def test_what_a_reader_holds_stays_however_long_it_was_kept_and_goes_when_it_has_ended(store):
    await overwritten(store)
    async with table(store.backend).reading() as snapshot:
        assert snapshot.position == 2
        await committed(store.backend, "overwrite", {1: 2})
        held = await cleaned(store)
        assert (held.files, held.horizon, held.held_files) == (1, 2, 1)
        assert [reader.position for reader in held.readers] == [2]
        assert paths_of(snapshot) <= store.data_files
        table_is_at_rest({path: data for path, data in store.objects.items() if path not in leases(store)})
    assert leases(store) == set()
    gone = await cleaned(store)
    assert (gone.files, gone.held_files, gone.readers) == (1, 0, ())
    assert not paths_of(snapshot) & store.data_files
    store.check_at_rest()


@on_both_loops
async def test_of_several_readers_of_older_positions_the_oldest_position_counts(unstaged):
    await overwritten(unstaged, times=4)
    async with table(unstaged.backend).reading(as_of=4), table(unstaged.backend).reading(as_of=2) as snapshot:
        assert snapshot.position == 2
        result = await cleaned(unstaged)
        assert (result.files, result.horizon, result.held_files) == (1, 2, 3)
        assert [reader.position for reader in result.readers] == [2, 4]
        assert paths_of(snapshot) <= unstaged.data_files
    assert (await cleaned(unstaged)).files == 3


async def test_the_cleaning_at_the_end_of_a_write_heeds_leases_and_begins_no_instant_in_vain(unstaged):
    await committed(unstaged.backend, months={1: 1}, readers="table", retain_hours=0)
    async with table(unstaged.backend).reading() as snapshot:
        for _ in range(3):
            await committed(unstaged.backend, "overwrite", {1: 1})
        assert paths_of(snapshot) <= unstaged.data_files
        assert [entry["kind"] for entry in unstaged.log_entries] == ["commit"] * 4
    await committed(unstaged.backend, "overwrite", {1: 1})
    assert unstaged.retained_files == set()


async def test_a_dry_run_tells_who_holds_what_and_drops_nobody(replaced):
    dead = await leased(replaced, 0)
    replaced.clock.pass_lease()
    async with table(replaced.backend).reading(as_of=1):
        plan = await cleaned(replaced, dry_run=True)
        assert (plan.files, plan.held_files, [reader.position for reader in plan.readers]) == (0, 1, [1])
        assert dead in replaced.objects
        reading_only = FaultyBackend(replaced.backend, refused("put"), refused("put_new"), refused("delete"))
        assert (await table(reading_only).clean(retain_hours=0, dry_run=True)).held_files == 1


async def test_a_lease_that_was_not_renewed_counts_no_more_and_is_dropped(replaced):
    lease = await leased(replaced, 1)
    replaced.clock.now += LEASE.expiry_s
    assert (await cleaned(replaced)).files == 0
    assert lease in replaced.objects
    replaced.clock.now += 1
    assert (await cleaned(replaced)).files == 1
    replaced.check_at_rest()
    assert leases(replaced) == set()


async def test_the_lease_of_a_process_that_has_ended_counts_no_more_at_once(replaced):
    await leased(replaced, 1, replace(WriterIdentity.here(), started="1"))
    assert (await cleaned(replaced)).files == 1
    await leased(replaced, 1)
    replaced.clock.pass_lease()
    assert (await table(replaced.backend).clean()).files == 0
    assert leases(replaced) == set(), "those of dead readers are dropped where nothing is due, too"


async def test_a_cleaner_that_stands_still_between_two_requests_takes_no_living_reader_for_dead(replaced):
    """It asks for the time before it lists the leases."""
    lease = await leased(replaced, 1)

    class Halting(FaultyBackend):
        """Each time after a listing of leases an hour passes, in which the reader has renewed its own."""

        async def list(self, directory):
            async for entry in super().list(directory):
                yield entry
            if directory == READ_FOLDER:
                replaced.clock.now += HOUR_S
                await replaced.backend.put(lease, replaced.objects[lease])

    assert (await table(Halting(replaced.backend)).clean(retain_hours=0)).files == 0
    assert lease in replaced.objects


async def test_a_lease_that_cannot_be_read_holds_everything_until_it_has_expired(replaced, caplog):
    await replaced.backend.put(f"{READ_FOLDER}/odd", b"\xc1")
    assert (await cleaned(replaced)).held_files == 1
    assert "lease.unreadable" in caplog.text
    replaced.clock.pass_lease()
    assert (await cleaned(replaced)).files == 1


async def test_a_lease_lives_as_long_as_its_block(replaced):
    async with table(replaced.backend).reading():
        (lease,) = leases(replaced)
        for _ in range(30):
            await anyio.sleep(LEASE.heartbeat_interval_s)
            replaced.clock.now += LEASE.heartbeat_interval_s
        assert replaced.clock.now - replaced.modified[lease] <= 2 * LEASE.heartbeat_interval_s
    assert leases(replaced) == set()


async def test_a_block_that_raises_or_is_cancelled_gives_its_lease_up_and_its_error_leaves_bare(replaced):
    with pytest.raises(KeyError, match="a query of mine"):
        async with table(replaced.backend).reading():
            raise KeyError("a query of mine")
    assert leases(replaced) == set()
    with anyio.move_on_after(5):
        async with table(replaced.backend).reading():
            await anyio.sleep_forever()
    assert leases(replaced) == set()


async def test_a_lease_that_cannot_be_deleted_is_left_to_expire(replaced, caplog):
    async with table(replaced.faulty).reading():
        die(replaced.faulty)
    assert "lease.left" in caplog.text
    replaced.clock.pass_lease()
    assert (await cleaned(replaced)).files == 1


async def test_what_cannot_be_read_under_a_lease_is_refused_and_leaves_none(staged, unstaged):
    with pytest.raises(UnsupportedTable, match="holds no table yet"):
        async with table(unstaged.backend).reading():
            pass
    await overwritten(unstaged)
    await cleaned(unstaged)
    for as_of, why in (
        (1, "as_of=1 means position 1, whose files are no longer all retained"),
        (9, "the table has positions 0"),
    ):
        with pytest.raises(InvalidRequest, match=why):
            async with table(unstaged.backend).reading(as_of=as_of):
                pass
    await committed(staged.backend, months={1: 1})
    with pytest.raises(InvalidRequest, match=r"readers='directory' deletes replaced files.*or make a table with"):
        async with table(staged.backend).reading():
            pass
    assert leases(unstaged) == leases(staged) == set()


async def test_a_reader_at_the_head_sees_what_came_before_its_lease_was_there(replaced):
    """A lease put before the log is read: what is committed and cleaned in between is in the snapshot, or held."""
    storage = FaultyBackend(replaced.backend, slow("put", 5, f"{READ_FOLDER}/*", nth=1))
    async with anyio.create_task_group() as others:

        async def overwrite_and_clean() -> None:
            await anyio.sleep(1)
            await committed(replaced.backend, "overwrite", {1: 1})
            assert (await cleaned(replaced)).files == 2

        others.start_soon(overwrite_and_clean)
        async with table(storage).reading() as snapshot:
            assert snapshot.position == 4
            assert paths_of(snapshot) <= replaced.data_files


async def append_and_archive(store: Store) -> None:
    """Append so often that all entries of the log before are archived."""
    short = CommitSettings(log_entry_count=2)
    for _ in range(6):
        async with begin(table(store.backend, views=ViewSettings(checkpoint_entries=1), commit=short)) as job:
            await job.commit([await write_rows(job, store.backend, {1: 1})])


async def test_a_reader_whose_lease_was_put_late_sees_that_the_log_was_archived_beyond_what_it_had_read(replaced):
    """The entry after the last one that it has read is missing by then, which is not the end of the log."""
    storage = FaultyBackend(replaced.backend, slow("put", 5, f"{READ_FOLDER}/*", nth=1))
    async with anyio.create_task_group() as others:

        async def archive() -> None:
            await anyio.sleep(1)
            await committed(replaced.backend, "overwrite", {1: 1})
            assert (await cleaned(replaced)).files == 2
            await append_and_archive(replaced)
            assert entry_path(3) not in replaced.stored

        others.start_soon(archive)
        async with table(storage).reading() as snapshot:
            assert snapshot.position == 10
            assert paths_of(snapshot) == replaced.committed_files


async def open_clean(store: Store) -> tuple[TableHandle, Reservation]:
    """A clean that has reserved its instant, and not asked for leases yet."""
    handle = TableHandle(store.backend, CommitSettings(), LEASE)
    await handle.log.refresh()
    reservation, _ = await reserve(handle, operation="clean", marker_kind="direct")
    return handle, reservation


@pytest.mark.parametrize(
    "ends",
    [decide, lambda handle, reservation: drop_bookkeeping(handle, reservation.instant)],
    ids=["is decided", "gives its instant up"],
)
async def test_a_reader_of_an_older_position_waits_for_an_open_clean_until_it_ends(replaced, ends):
    handle, reservation = await open_clean(replaced)
    async with anyio.create_task_group() as others:

        async def end_later() -> None:
            await anyio.sleep(20)
            await ends(handle, reservation)

        others.start_soon(end_later)
        async with table(replaced.backend).reading(as_of=1) as snapshot:
            assert 20 <= anyio.current_time() < 22
            assert snapshot.position == 1
            assert paths_of(snapshot) <= replaced.data_files


async def test_a_reader_whose_files_an_open_clean_then_lets_go_is_refused(replaced):
    """That clean has listed the leases before this one was there, and wins its entry after the reader has looked."""
    slow_entry = FaultyBackend(replaced.backend, slow("put_new", 10, "*/log/*"))
    async with anyio.create_task_group() as others:

        async def clean() -> None:
            assert (await table(slow_entry).clean(retain_hours=0)).files == 1

        others.start_soon(clean)
        await anyio.sleep(1)
        assert any("/open/" in path for path in replaced.objects)
        with pytest.raises(InvalidRequest, match="no longer all retained"):
            async with table(replaced.backend).reading(as_of=1):
                pass
    assert leases(replaced) == set()


async def test_a_reader_whose_files_a_clean_lets_go_is_refused_where_that_is_archived_when_it_looks(replaced):
    """That clean has listed the leases before this one was there, and is in the log, and archived, before the reader
    has the answer to which instants are open.
    """
    slow_entry = FaultyBackend(replaced.backend, slow("put_new", 10, "*/log/*"))
    storage = FaultyBackend(replaced.backend, slow("list", 0, OPEN_FOLDER, nth=1, after_s=30))
    async with anyio.create_task_group() as others:

        async def clean_and_archive() -> None:
            assert (await table(slow_entry).clean(retain_hours=0)).files == 1
            await append_and_archive(replaced)
            assert entry_path(3) not in replaced.stored

        others.start_soon(clean_and_archive)
        await anyio.sleep(1)
        with pytest.raises(InvalidRequest, match="position 1 of 'memory:' is archived"):
            async with table(storage).reading(as_of=1):
                pass
    assert leases(replaced) == set()


async def test_a_clean_whose_process_died_before_its_entry_is_decided_by_the_reader_that_waits(replaced):
    _, reservation = await open_clean(replaced)
    replaced.clock.pass_lease()
    async with table(replaced.backend).reading(as_of=1) as snapshot:
        assert paths_of(snapshot) <= replaced.data_files
        last = replaced.log_entries[-1]
        assert (last["kind"], last["instant"]) == ("rollback", reservation.instant)
    await table(replaced.backend).clean()
    replaced.check_at_rest()


async def test_a_clean_that_stays_undecided_is_waited_for_no_longer_than_it_may_take(replaced):
    _, reservation = await open_clean(replaced)
    with pytest.raises(TryAgain, match=f"the clean of instant {reservation.instant} has been undecided for 240 s"):
        async with table(replaced.backend).reading(as_of=1):
            pass
    assert anyio.current_time() == pytest.approx(240, abs=1)
    assert leases(replaced) == set()


async def test_a_reader_asks_for_reservations_only_where_something_of_its_position_was_replaced(replaced):
    for as_of, lists_them in ((None, False), (2, False), (1, True)):
        async with table(replaced.faulty).reading(as_of=as_of):
            assert (OPEN_FOLDER in replaced.faulty.paths("list")) is lists_them


async def test_a_lease_that_comes_between_the_two_looks_of_a_clean_is_heeded(unstaged):
    await overwritten(unstaged, times=2)
    handle = TableHandle(unstaged.backend, CommitSettings(), LEASE)
    history = await handle.log.refresh()
    properties = await read_properties(unstaged.backend)
    assert properties is not None

    class Watched(FaultyBackend):
        """A reader puts its lease while the clean reserves its instant."""

        async def put_new(self, path, data):
            await super().put_new(path, data)
            if "/open/" in path:
                await leased(unstaged, positions.pop())

    positions, handle.backend = [1, 2], Watched(unstaged.backend)
    for first, outcome in ((1, (2, 1, 1)), (3, (2, 0, 1))):
        due = Due(horizon=3, files=history.replaced(range(first, 4)), looked_at=CleanScan(entries=0, partitions=0))
        gone = await expire(handle, properties, due)
        assert (gone.horizon, len(gone.files), len(gone.held)) == outcome
    assert [entry["kind"] for entry in unstaged.log_entries] == ["commit"] * 3 + ["clean"]


async def test_a_reader_that_cannot_put_its_lease_is_told_and_reads_nothing(replaced):
    storage = FaultyBackend(replaced.backend, lost_request("put", f"{READ_FOLDER}/*"))
    with pytest.raises(OSError, match="lost"):
        async with table(storage).reading():
            pytest.fail("no lease, no block")
    assert leases(replaced) == set()
