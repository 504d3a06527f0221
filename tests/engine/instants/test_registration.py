"""How a writer gets its instant, and the number by which others find it: nothing is listed where no writer is open."""

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta

import anyio
import msgpack
import pytest

from tallymark.backends import Backend
from tallymark.engine.settings import MarkerSettings
from tallymark.engine.timeline.instant import parse_instant
from tallymark.engine.timeline.lease import HEARTBEAT_FOLDER
from tallymark.engine.timeline.log import LOG_FOLDER
from tallymark.engine.timeline.registration import REGISTRATION_FOLDER, registration_path
from tallymark.engine.timeline.reservation import OPEN_FOLDER
from tests.engine.jobs.scene import (
    Store,
    WallClock,
    abandon,
    begin,
    committed,
    die,
    flights,
    table,
    write_in_thread,
    write_rows,
)
from tests.support.faulty import FaultyBackend, lost_answer, lost_request, slow
from tests.support.loops import on_both_loops
from tests.table_invariants import entry_fields

kinds = pytest.mark.parametrize("kind", ["batched", "direct"])
BATCHED = MarkerSettings()


def told(store: Store) -> list[tuple[int, list[int]]]:
    """The numbers that entries tell, and which were not over then."""
    return [(entry.get("begun", 0), entry.get("unfinished", [])) for entry in store.log_entries]


def without_numbers(store: Store, *, of: str) -> None:
    """As a release that took none would have left these objects."""
    for path, data in store.objects.items():
        if path.startswith(of):
            fields = entry_fields(data)
            rest = {name: value for name, value in fields.items() if name not in ("begun", "unfinished")}
            store.backend._objects[path] = (msgpack.packb(rest), store.modified[path])


def ahead(**by: float) -> WallClock:
    """A clock that is ahead of the others by that."""
    clock = WallClock()
    clock.moment += timedelta(**by)
    return clock


@dataclass(frozen=True, slots=True)
class Write:
    """One without rows."""

    storage: Backend
    clock: WallClock | None = None
    after_s: float = 0.0
    for_s: float = 0.0


async def write_at_once(*writes: Write) -> list[str]:
    """Return the instants, in the order in which the writes got theirs."""
    instants: list[str] = []

    async def run(write: Write) -> None:
        await anyio.sleep(write.after_s)
        async with begin(table(write.storage, clock=write.clock), markers=BATCHED) as job:
            instants.append(job.instant)
            await anyio.sleep(write.for_s)
            await job.commit([])

    async with anyio.create_task_group() as tasks:
        for write in writes:
            tasks.start_soon(run, write)
    return instants


@on_both_loops
async def test_a_write_that_meets_nobody_lists_the_log_and_nothing_else(store):
    await committed(store.backend)
    for mode in ("append", "overwrite"):
        storage = FaultyBackend(store.backend)
        await committed(storage, mode, markers=BATCHED)
        assert storage.paths("list") == [".hoodie"]
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
    assert store.faulty.paths("list") == [".hoodie"]
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
async def test_what_a_failed_start_has_left_is_swept_after_its_lease_and_not_before(store, faults, caplog):
    await committed(store.backend)
    with pytest.raises(OSError, match="lost"):
        async with begin(FaultyBackend(store.backend, *faults)):
            raise AssertionError("no job")
    assert ("instant.unfinished" in caplog.text) == (faults[0].verb == "open_staging")
    await committed(store.backend)
    assert registration_path(2) in store.objects, "its writer may still continue"
    store.clock.pass_lease()
    await committed(store.backend)
    store.check_at_rest()


async def test_a_number_that_lands_once_more_when_its_writer_is_over_goes_with_the_next_clean(unstaged):
    await committed(unstaged.backend)
    async with begin(unstaged.backend) as job:
        again = unstaged.objects[registration_path(2)]
        await job.commit([])
    await committed(unstaged.backend)
    await unstaged.backend.put(registration_path(2), again)
    await committed(unstaged.faulty, markers=BATCHED)
    assert unstaged.faulty.paths("list") == [".hoodie"], "nobody goes on with it"
    await table(unstaged.backend).clean()
    unstaged.check_at_rest()


async def test_a_number_that_others_have_passed_while_its_put_was_on_its_way_is_given_up(store):
    """Its clock is ahead, so that its instant is later than theirs: by that it would not notice."""
    await committed(store.backend)
    late = FaultyBackend(store.backend, slow("put_new", 10, f"{REGISTRATION_FOLDER}/*", nth=1))

    async def others() -> None:
        await anyio.sleep(1)
        await committed(store.backend)
        await committed(store.backend)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(others)
        async with begin(table(late, clock=ahead(days=30)), markers=BATCHED) as job:
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
    await write_at_once(Write(slowly), Write(store.backend, after_s=1, for_s=60))
    assert told(store)[1:] == [(3, [2]), (2, [])]
    store.check_at_rest()


async def test_who_begins_in_the_same_millisecond_as_another_asks_for_a_later_instant(store):
    """A beat under the other's instant would keep that alive when its writer is dead."""
    await committed(store.backend, clock=WallClock())
    clock = ahead(seconds=1)
    slowly = FaultyBackend(store.backend, slow("put_new", 5, f"{OPEN_FOLDER}/*", nth=1))
    quickly = FaultyBackend(store.backend)
    instants = await write_at_once(Write(slowly, clock), Write(quickly, clock, after_s=1, for_s=60))
    assert instants == [*sorted(instants, reverse=True)]
    assert not any(instants[1] in path for path in quickly.paths("put"))
    assert told(store)[1:] == [(2, []), (3, [2])]
    store.check_at_rest()


async def test_a_number_that_was_taken_for_an_instant_of_another_goes_with_its_writer(store):
    """The other one is of a release that took no numbers, so that nobody could see it before."""
    await committed(store.backend, clock=WallClock())
    clock = ahead(seconds=1)
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
    for is_listed in (True, False):
        storage = FaultyBackend(store.backend)
        await committed(storage, markers=BATCHED)
        assert (OPEN_FOLDER in storage.paths("list")) == is_listed == (storage.paths("list") != [".hoodie"])
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


@kinds
@on_both_loops
async def test_number_beat_and_type_come_before_the_reservation_and_that_before_the_log_is_read(staged, kind):
    await committed(staged.backend)
    async with begin(staged.faulty, markers=MarkerSettings(kind=kind)) as job:
        await job.commit([])
    calls = [(call.verb, path) for call in staged.faulty.calls for path in call.paths]
    start = calls.index(("put_new", registration_path(2)))
    assert sorted(calls[start + 1 : start + 3]) == [
        ("put", f".hoodie/.tallymark/beat/{job.instant}"),
        ("put", f".hoodie/.temp/{job.instant}/MARKERS.type"),
    ]
    assert calls[start + 3] == ("put_new", f"{OPEN_FOLDER}/{job.instant}")
    assert sorted(calls[start + 4 : start + 6]) == [("get", f"{LOG_FOLDER}/{number:020d}") for number in (1, 2)]


@on_both_loops
async def test_no_object_is_written_twice_within_a_short_write(store):
    for _ in range(2):
        async with begin(store.faulty, markers=MarkerSettings(kind="batched")) as job:
            await job.commit([await write_in_thread(job, store.backend, flights())])
    puts = Counter(path for call in store.faulty.calls if call.verb == "put" for path in call.paths)
    assert {path for path, count in puts.items() if count > 1} == set(), "GCS takes one write a second of each"


@on_both_loops
async def test_a_clock_behind_the_log_does_not_matter(store):
    clock = WallClock()
    target = table(store.backend, clock=clock)
    instants = []
    for step in (timedelta(0), timedelta(days=-400), timedelta(0), timedelta(milliseconds=1)):
        clock.moment += step
        async with begin(target) as job:
            await job.commit([await write_rows(job, store.backend)])
            instants.append(job.instant)
    assert instants == sorted(set(instants))
    store.check_at_rest()


async def test_an_instant_whose_owner_finishes_at_that_moment_is_left_to_the_next_one(staged):
    """The reservation was taken when it was put, and gone when it was read."""
    await committed(staged.backend)
    clock = WallClock()

    class Vanishing(FaultyBackend):
        async def get(self, path: str) -> bytes:
            if path.startswith(OPEN_FOLDER) and not self.paths("list").count(OPEN_FOLDER):
                await self.inner.delete([path])
            return await super().get(path)

    async with begin(table(staged.backend, clock=clock)) as first:
        storage = Vanishing(staged.backend)
        second = table(storage, clock=WallClock(parse_instant(first.instant)))
        async with begin(second) as job:
            assert job.instant > first.instant
            await job.commit([])
        assert staged.decisions[job.instant]["kind"] == "commit"


async def test_a_begin_that_fails_after_its_reservation_leaves_nothing(store):
    await committed(store.backend)
    storage = FaultyBackend(store.backend, lost_answer("open_staging"))
    with pytest.raises(OSError, match="lost"):
        async with begin(storage):
            raise AssertionError("no job")
    store.check_no_bookkeeping()


async def test_signs_of_life_that_land_while_the_winner_of_the_instant_drops_its_own_do_not_stay(store):
    """Both want one instant. The loser's beat lands when the winner has dropped its own, and not its reservation."""
    await committed(store.backend)
    clock = ahead(hours=1)
    late = FaultyBackend(store.backend, slow("put", 10, ".hoodie/.tallymark/beat/*"))
    leaving = FaultyBackend(store.backend, slow("delete", 30, f"{OPEN_FOLDER}/*"))
    instants = await write_at_once(Write(late, clock, for_s=60), Write(leaving, clock, after_s=1))
    assert len(set(instants)) == 2
    assert sum(path.startswith(".hoodie/.tallymark/beat/") for path in late.paths("put")) >= 2, "it lost one"
    store.check_at_rest()


async def test_an_instant_that_its_writer_gives_up_is_never_anybody_elses(store):
    """Its number was passed. What it deletes then would be the reservation of whoever had the instant next."""
    await committed(store.backend, clock=WallClock())
    late = ahead(hours=1)
    overtaken = FaultyBackend(store.backend, slow("put", 10, ".hoodie/.tallymark/beat/*"))
    overtaken.add(slow("delete", 30, ".hoodie/.tallymark/beat/*"))
    instants = await write_at_once(
        Write(overtaken, late),
        Write(store.backend, ahead(minutes=1), after_s=1),
        Write(store.backend, late, after_s=20, for_s=80),
        Write(store.backend, late, after_s=45),
    )
    assert len(set(instants)) == 4
    store.check_at_rest()
