"""The numbers under which writers begin: who is open is found by them, and nothing is listed where nobody is."""

from datetime import timedelta

import anyio
import msgpack
import pytest

from tallymark.engine.settings import MarkerSettings
from tallymark.engine.timeline.lease import HEARTBEAT_FOLDER
from tallymark.engine.timeline.log import LOG_FOLDER
from tallymark.engine.timeline.registration import REGISTRATION_FOLDER, registration_path
from tallymark.engine.timeline.reservation import OPEN_FOLDER
from tests.engine.jobs.scene import Store, WallClock, abandon, begin, committed, die, table, write_rows
from tests.support.faulty import FaultyBackend, lost_answer, lost_request, slow
from tests.support.loops import on_both_loops

kinds = pytest.mark.parametrize("kind", ["batched", "direct"])
BATCHED = MarkerSettings()


def told(store: Store) -> list[tuple[int, list[int]]]:
    """The numbers that entries tell, and which were not over then."""
    return [(entry.get("begun", 0), entry.get("unfinished", [])) for entry in store.log_entries]


def without_numbers(store: Store, *, of: str) -> None:
    """As a release that took none would have left these objects."""
    for path, data in store.objects.items():
        if path.startswith(of):
            fields = msgpack.unpackb(data)
            rest = {name: value for name, value in fields.items() if name not in ("begun", "unfinished")}
            store.backend._objects[path] = (msgpack.packb(rest), store.modified[path])


@on_both_loops
async def test_a_write_that_meets_nobody_lists_the_log_and_nothing_else(store):
    await committed(store.backend)
    for mode in ("append", "overwrite"):
        storage = FaultyBackend(store.backend)
        await committed(storage, mode, markers=BATCHED)
        assert storage.paths("list") == [LOG_FOLDER]
    assert told(store) == [(1, []), (2, []), (3, [])]
    store.check_at_rest()


@kinds
async def test_a_dead_writer_is_found_by_its_number_however_many_have_written_since(kind, store):
    """They began while its lease was running still."""
    await committed(store.backend)
    left = await abandon(store, kind)
    for _ in range(3):
        await committed(store.backend, markers=BATCHED)
    assert told(store)[1:] == [(3, [2]), (4, [2]), (5, [2])]
    assert left not in store.decisions
    store.clock.pass_lease()
    await committed(store.backend, markers=BATCHED)
    assert store.decisions[left]["kind"] == "rollback"
    assert store.decisions[left]["begun"] == 2
    store.check_at_rest()


async def test_writers_that_have_ended_meanwhile_are_looked_at_once_and_nothing_is_listed_for_them(store):
    await committed(store.backend)
    async with begin(store.backend, markers=BATCHED) as slow, begin(store.backend, markers=BATCHED) as quick:
        await quick.commit([])
        await slow.commit([])
    assert sorted(told(store)[1:]) == [(2, []), (3, [2])]
    await committed(store.faulty, markers=BATCHED)
    assert store.faulty.paths("list") == [LOG_FOLDER]
    looked = [path for path in store.faulty.paths("get") if path.startswith(REGISTRATION_FOLDER)]
    assert sorted(looked) == [registration_path(number) for number in (2, 3, 4)]
    store.check_at_rest()


@pytest.mark.parametrize(
    "faults",
    [
        [lost_answer("put_new", f"{REGISTRATION_FOLDER}/*")],
        [lost_request("put", f"{HEARTBEAT_FOLDER}/*"), lost_request("put", "*.type")],
        [lost_answer("put_new", f"{OPEN_FOLDER}/*")],
        [lost_answer("open_staging"), lost_answer("close_staging")],
    ],
    ids=["the answer to its number lost", "a number alone", "the answer to its reservation lost", "staging lost"],
)
async def test_what_a_failed_begin_has_left_is_swept_after_its_lease_and_not_before(staged, faults, caplog):
    await committed(staged.backend)
    with pytest.raises(OSError, match="lost"):
        async with begin(FaultyBackend(staged.backend, *faults)):
            raise AssertionError("no job")
    assert ("instant.unfinished" in caplog.text) == (faults[0].verb == "open_staging")
    await committed(staged.backend)
    assert registration_path(2) in staged.objects, "its writer may be about to go on"
    staged.clock.pass_lease()
    await committed(staged.backend)
    staged.check_at_rest()


@pytest.mark.parametrize("rescue", ["write", "clean"])
async def test_a_number_whose_writer_died_right_before_its_own_end_goes_with_the_next_write_or_clean(rescue, store):
    await committed(store.backend)
    storage = FaultyBackend(store.backend, lost_request("delete", f"{REGISTRATION_FOLDER}/*"))
    await committed(storage, markers=BATCHED)
    assert [path for path in store.objects if path.startswith((REGISTRATION_FOLDER, OPEN_FOLDER))] == [
        registration_path(2)
    ]
    if rescue == "clean":
        await table(store.backend).clean()
    else:
        storage = FaultyBackend(store.backend)
        await committed(storage, markers=BATCHED)
        assert storage.paths("list") == [LOG_FOLDER]
    store.check_at_rest()


async def test_a_number_that_lands_once_more_when_its_writer_is_over_goes_with_the_next_clean(unstaged):
    await committed(unstaged.backend)
    async with begin(unstaged.backend) as job:
        again = unstaged.objects[registration_path(2)]
        await job.commit([])
    await committed(unstaged.backend)
    await unstaged.backend.put(registration_path(2), again)
    await committed(unstaged.faulty, markers=BATCHED)
    assert unstaged.faulty.paths("list") == [LOG_FOLDER], "nobody goes on with it"
    await table(unstaged.backend).clean()
    unstaged.check_at_rest()


async def test_a_number_that_others_have_passed_while_its_put_was_on_its_way_is_given_up(store):
    """Its clock is ahead, so that its instant is later than theirs: by that it would not notice."""
    await committed(store.backend)
    ahead = WallClock()
    ahead.moment += timedelta(days=30)
    late = FaultyBackend(store.backend, slow("put_new", 10, f"{REGISTRATION_FOLDER}/*", nth=1))

    async def others() -> None:
        await anyio.sleep(1)
        await committed(store.backend)
        await committed(store.backend)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(others)
        async with begin(table(late, clock=ahead), markers=BATCHED) as job:
            assert [path for path in store.objects if path.startswith(REGISTRATION_FOLDER)] == [registration_path(4)]
            await write_rows(job, late)
            die(late)
    assert [number for number, _ in told(store)] == [1, 2, 3, 2], "what is given up has an entry that ends its instant"
    store.clock.pass_lease()
    await committed(store.backend)
    assert store.decisions[job.instant]["kind"] == "rollback"
    store.check_at_rest()


async def test_of_two_that_begin_at_once_the_second_takes_the_next_number_and_sees_the_first(store):
    await committed(store.backend)
    slowly = FaultyBackend(store.backend, slow("put_new", 5, f"{REGISTRATION_FOLDER}/*", nth=1))

    async def first() -> None:
        await anyio.sleep(1)
        async with begin(store.backend, markers=BATCHED) as job:
            await anyio.sleep(60)
            await job.commit([])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(first)
        await committed(slowly, markers=BATCHED)
    assert told(store)[1:] == [(3, [2]), (2, [])]
    store.check_at_rest()


async def test_who_begins_in_the_same_millisecond_as_another_asks_for_a_later_instant(store):
    """A beat under the other's instant would keep that alive when its writer is dead."""
    await committed(store.backend, clock=WallClock())
    clock = WallClock()
    clock.moment += timedelta(seconds=1)
    slowly = FaultyBackend(store.backend, slow("put_new", 5, f"{OPEN_FOLDER}/*", nth=1))
    quickly = FaultyBackend(store.backend)
    instants = []

    async def twin() -> None:
        await anyio.sleep(1)
        async with begin(table(quickly, clock=clock)) as job:
            instants.append(job.instant)
            await anyio.sleep(60)
            await job.commit([])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(twin)
        async with begin(table(slowly, clock=clock)) as job:
            instants.append(job.instant)
            await job.commit([])
    assert instants == [*sorted(instants, reverse=True)]
    assert not any(instants[1] in path for path in quickly.paths("put"))
    assert told(store)[1:] == [(2, []), (3, [2])]
    store.check_at_rest()


async def test_a_number_that_was_taken_for_an_instant_of_another_goes_with_its_writer(store):
    """The other one is of a release that took no numbers, so that nobody could see it before."""
    await committed(store.backend, clock=WallClock())
    clock = WallClock()
    clock.moment += timedelta(seconds=1)
    async with begin(table(store.backend, clock=clock)) as other:
        await store.backend.delete([registration_path(2)])
        without_numbers(store, of=OPEN_FOLDER)
        async with begin(table(store.backend, clock=clock)) as job:
            held = [path for path in store.objects if path.startswith(REGISTRATION_FOLDER)]
            assert held == [registration_path(number) for number in (2, 3)]
            assert job.instant > other.instant
            await job.commit([])
    store.check_at_rest()


async def test_a_table_whose_entries_tell_no_numbers_is_listed_once(store):
    await committed(store.backend)
    without_numbers(store, of=LOG_FOLDER)
    storage = FaultyBackend(store.backend)
    await committed(storage, markers=BATCHED)
    assert OPEN_FOLDER in storage.paths("list")
    storage = FaultyBackend(store.backend)
    await committed(storage, markers=BATCHED)
    assert storage.paths("list") == [LOG_FOLDER]
    store.check_at_rest()


async def test_a_writer_without_a_number_is_found_by_listing_as_long_as_it_is_open(store):
    await committed(store.backend)
    left = await abandon(store)
    for folder in (LOG_FOLDER, OPEN_FOLDER):
        without_numbers(store, of=folder)
    await store.backend.delete([registration_path(2)])
    for _ in range(3):
        await committed(store.backend, markers=BATCHED)
        assert told(store)[-1][1] == [0]
    store.clock.pass_lease()
    await committed(store.backend, markers=BATCHED)
    assert store.decisions[left]["kind"] == "rollback"
    assert told(store)[-1][1] == []
    store.check_at_rest()
