"""How a write gets its instant."""

from collections import Counter
from datetime import timedelta
from functools import partial

import anyio
import pytest

from tallymark.engine.settings import MarkerSettings
from tallymark.engine.timeline.instant import parse_instant
from tallymark.engine.timeline.registration import registration_path
from tallymark.engine.timeline.reservation import OPEN_FOLDER
from tests.engine.jobs.scene import (
    WallClock,
    begin,
    committed,
    flights,
    table,
    write_in_thread,
    write_rows,
)
from tests.support.faulty import FaultyBackend, lost_answer, slow
from tests.support.loops import on_both_loops


@pytest.mark.parametrize("kind", ["batched", "direct"])
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
    assert calls[start + 3 : start + 5] == [
        ("put_new", f"{OPEN_FOLDER}/{job.instant}"),
        ("get", ".hoodie/.tallymark/log/00000000000000000002"),
    ]


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


async def write(storage, instants: list[str], *, clock, after_s, for_s=0.0):
    """A write that begins then and takes so long; its instant goes to ``instants``."""
    await anyio.sleep(after_s)
    async with begin(table(storage, clock=clock)) as job:
        instants.append(job.instant)
        await anyio.sleep(for_s)
        await job.commit([])


async def test_signs_of_life_that_land_while_the_winner_of_the_instant_drops_its_own_do_not_stay(store):
    """Both want one instant. The loser's beat lands when the winner has dropped its own, and not its reservation."""
    clock, instants = WallClock(), []
    await committed(store.backend)
    clock.moment += timedelta(hours=1)
    late = FaultyBackend(store.backend, slow("put", 10, ".hoodie/.tallymark/beat/*"))
    leaving = FaultyBackend(store.backend, slow("delete", 30, f"{OPEN_FOLDER}/*"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(write, late, instants, clock=clock, after_s=0, for_s=60))
        tasks.start_soon(partial(write, leaving, instants, clock=clock, after_s=1))
    assert len(set(instants)) == 2
    assert sum(path.startswith(".hoodie/.tallymark/beat/") for path in late.paths("put")) >= 2, "it lost one"
    store.check_at_rest()


async def test_an_instant_that_its_writer_gives_up_is_never_anybody_elses(store):
    """Its number was passed. What it deletes then would be the reservation of whoever had the instant next."""
    behind, ahead, instants = WallClock(), WallClock(), []
    await committed(store.backend, clock=behind)
    ahead.moment += timedelta(hours=1)
    behind.moment += timedelta(minutes=1)
    overtaken = FaultyBackend(store.backend, slow("put", 10, ".hoodie/.tallymark/beat/*"))
    overtaken.add(slow("delete", 30, ".hoodie/.tallymark/beat/*"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(write, overtaken, instants, clock=ahead, after_s=0))
        tasks.start_soon(partial(write, store.backend, instants, clock=behind, after_s=1))
        tasks.start_soon(partial(write, store.backend, instants, clock=ahead, after_s=20, for_s=80))
        tasks.start_soon(partial(write, store.backend, instants, clock=ahead, after_s=45))
    assert len(set(instants)) == 4
    store.check_at_rest()
