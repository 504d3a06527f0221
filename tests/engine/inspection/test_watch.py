"""Looks at the markers of open instants, from outside."""

from collections.abc import AsyncIterator

import pytest

from tallymark.backends.contract import Entry
from tallymark.backends.measured import MeasuredBackend
from tallymark.backends.meter import RequestMeter
from tallymark.engine.errors import CorruptObject
from tallymark.engine.inspection.watch import InstantWatch
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.markers.segment import marker_folder
from tallymark.engine.settings import MarkerSettings
from tests.engine.jobs.scene import Store, StoreClock, begin, mark_directly, name_of, table, write_rows
from tests.engine.markers.recorded import HEAD
from tests.support.faulty import FaultyBackend, refused

EAGER = MarkerSettings(interval_s=0)


def path_of(job: WriteJob, task: int) -> str:
    return f"month=1/{name_of(job, task=task)}"


async def watching(backend, clock: StoreClock) -> InstantWatch:
    return InstantWatch((await table(backend).watch())._handle, now=clock)


async def test_a_look_counts_what_is_durable_by_now():
    store, clock = Store(has_staging=True), StoreClock()
    async with begin(store.backend, markers=EAGER) as job:
        watch = await watching(store.backend, clock)
        (found,) = await watch.scan()
        assert (found.instant, found.operation, found.marker_kind) == (job.instant, "append", "batched")
        assert (found.folder.markers, found.markers_s, found.is_over) == (0, None, False)
        await job._directory.create(path_of(job, 0), path_of(job, 1))
        await job._directory.create(path_of(job, 2))
        clock.now += 2
        (found,) = await watch.scan(job.instant)
    lines = 3 * len(f"{path_of(job, 0)}.marker.CREATE\n") + 2 * HEAD
    assert (found.folder.markers, found.folder.segments, found.folder.bytes) == (3, 2, lines)
    assert found.markers_s == 1.5


async def test_a_look_asks_for_each_segment_once():
    store, meter = Store(has_staging=True), RequestMeter()
    async with begin(store.backend, markers=EAGER) as job:
        watch = await watching(MeasuredBackend(store.backend, meter), StoreClock())
        await job._directory.create(path_of(job, 0))
        await watch.scan()
        before = meter.statistics()
        await watch.scan()
        idle = _made(before, meter.statistics())
        await job._directory.create(path_of(job, 1))
        before = meter.statistics()
        await watch.scan()
        busy = _made(before, meter.statistics())
    assert idle == {"list": 4, "get": 1}  # reservations, beats, markers; the log's next entry
    assert busy == {"list": 4, "get": 2}


async def test_a_merge_between_two_looks_counts_no_marker_twice(staged):
    settings = MarkerSettings(interval_s=0, segment_count_max=1, merge_freed_min=1)
    async with begin(staged.backend, markers=settings) as job:
        watch = await watching(staged.backend, StoreClock())
        for number in range(10):
            await job._directory.create(path_of(job, number))
            (found,) = await watch.scan()
            assert found.folder.markers == number + 1
        assert found.folder.segments < 10


async def test_a_segment_that_is_gone_before_it_is_read_is_counted_where_it_went(staged):
    async with begin(staged.backend, markers=EAGER) as job:
        folder = marker_folder(job.instant)
        await job._directory.create(path_of(job, 0))

        class Merging(FaultyBackend):
            async def list(self, directory: str) -> AsyncIterator[Entry]:
                entries = [entry async for entry in super().list(directory)]
                if directory == folder:
                    (old,) = [entry.path for entry in entries if "/MARKERS1" in entry.path]
                    await staged.backend.put(f"{folder}/MARKERS1999999999", await staged.backend.get(old))
                    await staged.backend.delete([old])
                for entry in entries:
                    yield entry

        watch = await watching(Merging(staged.backend), StoreClock())
        (during,) = await watch.scan()
        watch._handle.backend = staged.backend
        watch._folders[job.instant]._backend = staged.backend
        (after,) = await watch.scan()
    assert (during.folder.markers, after.folder.markers) == (0, 1)


async def test_markers_that_tasks_put_themselves_are_counted_among_the_others(unstaged):
    async with begin(unstaged.backend, markers=EAGER) as job:
        await job._directory.create(path_of(job, 0))
        await mark_directly(job, unstaged.backend, [path_of(job, 1)])
        (found,) = await (await watching(unstaged.backend, StoreClock())).scan()
    assert (found.folder.markers, found.folder.direct, found.folder.segments) == (2, 1, 1)


async def test_a_beat_s_age_is_by_the_store_s_clock_goes_on_between_two_probes_and_is_not_told_where_we_may_only_read():
    store, clock = Store(has_staging=True), StoreClock()
    async with begin(store.backend):
        store.clock.now += 30
        watch = await watching(store.backend, clock)
        (found,) = await watch.scan()
        assert found.beat_age_s == 30
        before = store.objects
        clock.now += 5
        (found,) = await watch.scan()
        assert (found.beat_age_s, store.objects) == (35, before)
        (found,) = await (await watching(FaultyBackend(store.backend, refused("put")), clock)).scan()
        assert found.beat_age_s is None


@pytest.mark.parametrize("decision", ["commit", "rollback"])
async def test_how_an_instant_ended_is_reported_once(staged, decision):
    async with begin(staged.backend, markers=EAGER) as job:
        watch = await watching(staged.backend, StoreClock())
        report = await write_rows(job, staged.backend)
        await watch.scan()
        if decision == "commit":
            await job.commit([report])
            (found,) = await watch.scan()
            assert await watch.scan() == ()
    if decision == "rollback":
        (found,) = await watch.scan()
        assert (found.position, found.folder.markers) == (1, 2)
    assert (found.is_over, found.decision) == (True, decision)
    assert (await watch.scan(), await watch.scan()) == ((), ())


async def test_a_segment_that_cannot_be_read_is_an_error_that_names_it(staged):
    async with begin(staged.backend, markers=EAGER) as job:
        await staged.backend.put(f"{marker_folder(job.instant)}/MARKERS1073741999", b"nonsense\n")
        with pytest.raises(CorruptObject, match="MARKERS1073741999"):
            await (await watching(staged.backend, StoreClock())).scan()


def _made(before, after) -> dict[str, int]:
    counts = {each.request_class: each.count for each in before.classes}
    made = {each.request_class: each.count - counts.get(each.request_class, 0) for each in after.classes}
    return {request: count for request, count in made.items() if count}
