"""What ``clean`` sweeps, and when."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgpack
import pytest

from tallymark.engine.errors import CommitUnknown, CorruptObject
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.timeline.log import BODY_FOLDER
from tallymark.engine.timeline.reservation import HEARTBEAT_FOLDER, Reservation
from tallymark.engine.timeline.writer_identity import WriterIdentity
from tests.engine.jobs.scene import (
    Store,
    begin,
    committed,
    die,
    impatient,
    mark,
    name_of,
    table,
    write_rows,
)
from tests.support.faulty import FaultyBackend, lost_request
from tests.support.loops import on_both_loops
from tests.table_invariants import no_bookkeeping_is_left

DAY_S = 24 * 3600.0


async def fenced(store: Store) -> str:
    """A committed write that has left one fence; returns the fence's path."""
    async with begin(store.backend) as job:
        path = f"month=1/{name_of(job, attempt=5)}"
        await mark(job, store.backend, [path])
        await job.commit([await write_rows(job, store.backend)])
    return path


@on_both_loops
async def test_fences_go_after_their_time_by_the_stores_clock_and_not_before(unstaged):
    fence = await fenced(unstaged)
    unstaged.clock.now += DAY_S - 1
    assert (await table(unstaged.backend).clean()).fences_swept == 0
    assert fence in unstaged.data_files
    unstaged.clock.now += 1
    assert (await table(unstaged.backend).clean()).fences_swept == 1
    assert fence not in unstaged.data_files
    assert unstaged.fences == set()
    unstaged.check_at_rest()
    assert (await table(unstaged.backend).clean()).fences_swept == 0


@asynccontextmanager
async def fenced_before_its_entry(store: Store) -> AsyncIterator[tuple[WriteJob, TaskReport]]:
    """A job whose commit has left one fence, and failed to put its entry."""
    async with begin(table(store.faulty, commit=impatient(5))) as job:
        await mark(job, store.faulty, [f"month=1/{name_of(job, attempt=5)}"])
        report = await write_rows(job, store.faulty)
        store.faulty.add(lost_request("put_new", "*/log/*"))
        with pytest.raises(CommitUnknown):
            await job.commit([report])
        store.faulty.heal()
        yield job, report


async def test_fences_of_an_instant_that_is_not_decided_stay(unstaged):
    settings = impatient(zombie_after_s=0)
    async with fenced_before_its_entry(unstaged) as (job, report):
        assert (await table(unstaged.backend, commit=settings).clean()).fences_swept == 0
        await job.commit([report])
        assert (await table(unstaged.backend, commit=settings).clean()).fences_swept == 0, "it is not over yet"
    assert (await table(unstaged.backend, commit=settings).clean()).fences_swept == 1
    unstaged.check_at_rest()


async def test_fences_of_a_commit_that_stood_still_before_its_entry_stay_for_a_day_after_it(unstaged):
    """They are as young as that entry, however old their list is."""
    async with fenced_before_its_entry(unstaged) as (job, report):
        unstaged.clock.now += DAY_S + 1
        await job.commit([report])
    for waited_s, swept in ((0, 0), (DAY_S - 1, 0), (1, 1)):
        unstaged.clock.now += waited_s
        assert (await table(unstaged.backend).clean()).fences_swept == swept
    unstaged.check_at_rest()


async def test_a_writer_that_reserves_what_a_clean_takes_for_left_behind_keeps_it(unstaged):
    """Of an instant that nobody knows age only says that it is worth a try: whoever reserves it first has it."""
    await committed(unstaged.backend)
    late = "20261121090000000"
    await unstaged.backend.put(f".hoodie/.temp/{late}/MARKERS.type", b"DIRECT")
    unstaged.clock.pass_lease()

    class Continuing(FaultyBackend):
        """The writer continues once the clean has seen that the instant is not reserved."""

        async def put_new(self, path, data):
            if path == reservation.path:
                await unstaged.backend.put_new(path, reservation.encode())
            await super().put_new(path, data)

    reservation = Reservation(
        instant=late, nonce="n", writer=WriterIdentity.here(), marker_kind="direct", operation="append", expiry_s=120
    )
    await table(Continuing(unstaged.backend)).clean()
    assert f".hoodie/.temp/{late}/MARKERS.type" in unstaged.objects
    assert unstaged.objects[reservation.path] == reservation.encode()


async def test_an_interrupted_sweep_is_done_again(unstaged):
    await fenced(unstaged)
    unstaged.clock.now += DAY_S
    storage = FaultyBackend(unstaged.backend, lost_request("delete", ".hoodie/.tallymark/fence/*"))
    with pytest.raises(OSError, match="lost"):
        await table(storage).clean()
    assert unstaged.fences != set()
    await table(unstaged.backend).clean()
    assert unstaged.fences == set()
    no_bookkeeping_is_left({path: data for path, data in unstaged.objects.items() if "/beat/" not in path})


@pytest.mark.parametrize("data", [b"\xc1", b"", msgpack.packb("month=1"), msgpack.packb([1])])
async def test_a_list_that_cannot_be_read_deletes_nothing(unstaged, data):
    await fenced(unstaged)
    (path,) = [path for path in unstaged.objects if "/fence/" in path]
    await unstaged.backend.put(path, data)
    unstaged.clock.now += DAY_S
    before = unstaged.data_files
    with pytest.raises(CorruptObject, match="is not a list of fences"):
        await table(unstaged.backend).clean()
    assert unstaged.data_files == before


async def test_markers_and_seals_that_landed_after_their_instants_end_are_dropped(unstaged):
    result = await committed(unstaged.backend)
    for path in (f".temp/{result.instant}/MARKERS5", f".tallymark/seal/{result.instant}"):
        await unstaged.backend.put(f".hoodie/{path}", b"")
    await table(unstaged.backend).clean()
    unstaged.check_at_rest()


@pytest.mark.parametrize("instant", ["20261121000000569", "20261121090000000"], ids=["before", "after"])
@pytest.mark.parametrize(
    ("path", "data"), [(".hoodie/.temp/{}/MARKERS.type", b"DIRECT"), (HEARTBEAT_FOLDER + "/{}", b"")]
)
async def test_what_landed_under_an_instant_that_never_was_is_dropped_after_a_lease_and_not_before(
    unstaged, instant, path, data
):
    """Its reservation may have been lost. The log decides it first, so that no other writer takes it meanwhile."""
    await committed(unstaged.backend)
    await unstaged.backend.put(path.format(instant), data)
    await table(unstaged.backend).clean()
    assert path.format(instant) in unstaged.objects
    unstaged.clock.pass_lease()
    await table(unstaged.backend).clean()
    assert [(entry["kind"], entry["instant"]) for entry in unstaged.log_entries[1:]] == [("rollback", instant)]
    unstaged.check_at_rest()


async def test_markers_of_open_instants_stay(unstaged):
    async with begin(unstaged.backend) as job:
        report = await write_rows(job, unstaged.backend)
        await table(unstaged.backend).clean()
        assert len(await table(unstaged.backend).markers(job.instant)) == 2
        await job.commit([report])
        await table(unstaged.backend).clean()
        assert await table(unstaged.backend).open_instants() != []
    unstaged.check_at_rest()


@pytest.fixture
def small_bodies(monkeypatch):
    """Every entry of a commit is put as a body."""
    monkeypatch.setattr("tallymark.engine.timeline.log.BODY_BYTES", 320)


def bodies(store: Store) -> set[str]:
    return {path for path in store.stored if path.startswith(BODY_FOLDER)}


async def test_a_body_stays_for_a_writer_that_lives_and_commits_again_however_old_it_is(unstaged, small_bodies):
    async with begin(table(unstaged.faulty, commit=impatient(5))) as job:
        report = await write_rows(job, unstaged.faulty)
        unstaged.faulty.add(lost_request("put_new", "*/log/*"))
        with pytest.raises(CommitUnknown):
            await job.commit([report])
        unstaged.faulty.heal()
        unstaged.clock.now += DAY_S + 1
        await job._lease.renew()
        await table(unstaged.backend).clean()
        result = await job.commit([report])
    assert (await table(unstaged.backend).snapshot()).position == result.position
    assert len(bodies(unstaged)) == 1
    unstaged.check_at_rest()


async def test_a_body_whose_instant_was_rolled_back_goes_however_young_it_is(unstaged, small_bodies):
    await committed(unstaged.backend)
    kept = bodies(unstaged)
    storage = FaultyBackend(unstaged.backend, lost_request("put_new", "*/log/*"))
    async with begin(table(storage, commit=impatient(5))) as job:
        report = await write_rows(job, storage)
        with pytest.raises(CommitUnknown):
            await job.commit([report])
        die(storage)
    assert len(bodies(unstaged)) == 2
    unstaged.clock.pass_lease()
    await table(unstaged.backend).clean()
    assert bodies(unstaged) == kept
    unstaged.check_at_rest()


async def test_the_body_of_a_rollback_stays_as_long_as_the_log(unstaged, monkeypatch):
    """None is as large, but by what its entry may tell in time."""
    monkeypatch.setattr("tallymark.engine.timeline.log.BODY_BYTES", 100)
    await committed(unstaged.backend)
    async with begin(unstaged.backend) as job:
        await write_rows(job, unstaged.backend)
    kept = bodies(unstaged)
    assert len(kept) == 2
    await table(unstaged.backend).clean()
    assert bodies(unstaged) == kept
    unstaged.check_at_rest()


async def test_of_two_bodies_of_a_commit_the_one_that_its_entry_names_stays_and_one_of_an_earlier_release(
    unstaged, small_bodies
):
    """Its name does not say of which instant it is."""
    result = await committed(unstaged.backend)
    await unstaged.backend.put(f"{BODY_FOLDER}/n1", b"large")
    kept = bodies(unstaged)
    await unstaged.backend.put(f"{BODY_FOLDER}/{result.instant}/other", b"an earlier try")
    unstaged.clock.now += 100 * DAY_S
    await table(unstaged.backend).clean()
    assert bodies(unstaged) == kept
