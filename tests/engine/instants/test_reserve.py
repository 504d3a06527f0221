"""How a writer gets its instant, and finds the open ones: by the listing that opens the log."""

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta

import anyio
import pytest

from tallymark.backends import Backend
from tallymark.engine.settings import MarkerSettings
from tallymark.engine.timeline.instant import parse_instant
from tallymark.engine.timeline.log import LOG_FOLDER
from tallymark.engine.timeline.reservation import HEARTBEAT_FOLDER, OPEN_FOLDER
from tests.engine.jobs.scene import (
    WallClock,
    abandon,
    begin,
    committed,
    flights,
    table,
    write_in_thread,
    write_rows,
)
from tests.support.faulty import FaultyBackend, lost_answer, slow
from tests.support.loops import on_both_loops

kinds = pytest.mark.parametrize("kind", ["batched", "direct"])
BATCHED = MarkerSettings()


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
async def test_a_write_that_meets_no_open_writer_lists_the_bookkeeping_once_and_nothing_else(store):
    await committed(store.backend)
    for mode in ("append", "overwrite"):
        storage = FaultyBackend(store.backend)
        await committed(storage, mode, markers=BATCHED)
        assert storage.paths("list") == [".hoodie"]
    store.check_at_rest()


@kinds
async def test_a_dead_writer_is_found_however_many_have_written_since(kind, store):
    """They started while its lease was not over."""
    await committed(store.backend)
    left = await abandon(store, kind)
    for _ in range(3):
        await committed(store.backend, markers=BATCHED)
    assert left not in store.decisions
    store.clock.pass_lease()
    await committed(store.backend, markers=BATCHED)
    assert store.decisions[left]["kind"] == "rollback"
    store.check_at_rest()


@pytest.mark.parametrize(
    "faults",
    [
        [lost_answer("put_new", f"{OPEN_FOLDER}/*")],
        [lost_answer("open_staging"), lost_answer("close_staging")],
    ],
    ids=["the answer to its reservation lost", "staging lost"],
)
async def test_what_a_failed_start_has_left_is_swept_after_its_lease_and_not_before(store, faults, caplog):
    await committed(store.backend)
    with pytest.raises(OSError, match="lost"):
        async with begin(FaultyBackend(store.backend, *faults)):
            raise AssertionError("no job")
    assert ("instant.unfinished" in caplog.text) == (faults[0].verb == "open_staging")
    left = {path for path in store.stored if path.startswith((OPEN_FOLDER, HEARTBEAT_FOLDER))}
    await committed(store.backend)
    assert left <= set(store.stored), "its writer may still continue"
    store.clock.pass_lease()
    await table(store.backend).clean()
    store.check_at_rest()


async def test_a_writer_that_starts_in_the_same_millisecond_as_another_takes_a_later_instant(store):
    await committed(store.backend, clock=WallClock())
    clock = ahead(seconds=1)
    slowly = FaultyBackend(store.backend, slow("put_new", 5, f"{OPEN_FOLDER}/*", nth=1))
    instants = await write_at_once(Write(slowly, clock), Write(store.backend, clock, after_s=1, for_s=60))
    assert len(set(instants)) == 2
    store.check_at_rest()


async def test_no_heartbeat_is_put_under_the_instant_of_an_open_writer(store):
    """It would keep that alive when its writer is dead."""
    await committed(store.backend, clock=WallClock())
    clock = ahead(seconds=1)
    quickly = FaultyBackend(store.backend)
    async with begin(table(store.backend, clock=clock)) as open_:
        async with begin(table(quickly, clock=clock)) as job:
            await job.commit([])
        assert job.instant > open_.instant
        assert not any(open_.instant in path for path in quickly.paths("put"))
    store.check_at_rest()


@kinds
@on_both_loops
async def test_the_log_is_read_after_the_reservation_and_no_file_is_published_before_that(unstaged, kind):
    """Only then has no other writer used the instant. The first marker need not wait for it, its ack does."""
    await committed(unstaged.backend)
    slowly = FaultyBackend(unstaged.backend, slow("get", 5, f"{LOG_FOLDER}/*2", nth=2))
    async with begin(slowly, markers=MarkerSettings(kind=kind)) as job:
        await job.commit([await write_in_thread(job, slowly, flights())])
    calls = [(call.verb, path) for call in slowly.calls for path in call.paths]
    reserved = calls.index(("put_new", f"{OPEN_FOLDER}/{job.instant}"))
    confirmed = calls.index(("get", f"{LOG_FOLDER}/{2:020d}"), calls.index(("get", f"{LOG_FOLDER}/{2:020d}")) + 1)
    published = next(at for at, (_, path) in enumerate(calls) if path.endswith(".parquet"))
    assert reserved < confirmed < published


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
            if path.startswith(OPEN_FOLDER):
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


async def test_an_instant_that_its_writer_gives_up_is_never_anybody_elses(store):
    """Its number was passed. What it deletes then would be the reservation of whoever had the instant next."""
    await committed(store.backend, clock=WallClock())
    late = ahead(hours=1)
    overtaken = FaultyBackend(store.backend, slow("put_new", 10, f"{OPEN_FOLDER}/*", nth=1))
    overtaken.add(slow("delete", 30, f"{OPEN_FOLDER}/*"))
    instants = await write_at_once(
        Write(overtaken, late),
        Write(store.backend, ahead(minutes=1), after_s=1),
        Write(store.backend, late, after_s=20, for_s=80),
        Write(store.backend, late, after_s=45),
    )
    assert len(set(instants)) == 4
    store.check_at_rest()
