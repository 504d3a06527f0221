"""The guard: a write that would touch anything outside is refused as soon as that is known, and nothing is changed."""

import dataclasses
from typing import Any

import pytest

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.tasks.task_writer import TaskWriter
from tests.engine.jobs.scene import Store, write_in_thread
from tests.engine.jobs.yearly import DYNAMIC, MONTH, MONTHS, NEW, OLD, STATIC, YEAR, begin, flights, held, write
from tests.engine.tasks.scene import Markers

pytestmark = pytest.mark.usefixtures("loop")

STRAY = (10, 2014, 1)

ALLOWED: dict[str, tuple[dict[str, Any], Any]] = {
    "append": ({"mode": "append"}, YEAR),
    "append to a part": ({"mode": "append", "partition": YEAR}, MONTHS),
    "dynamic": (DYNAMIC, YEAR),
    "dynamic, one of several": (DYNAMIC, MONTHS),
    "dynamic below a part": ({**DYNAMIC, "partition": YEAR}, MONTHS),
    "static of the very part": ({**STATIC, "partition": YEAR}, YEAR),
    "static of one of several": ({**STATIC, "partition": MONTH}, MONTHS),
    "static below": ({**STATIC, "partition": MONTH}, [{"year": 2012}, YEAR]),
}


@pytest.mark.parametrize("case", ALLOWED)
async def test_what_stays_inside_is_written_as_without_a_guard(store, case):
    call, only = ALLOWED[case]
    free = Store(has_staging=store.backend.has_staging)
    for place, fence in ((store, only), (free, None)):
        await write(place.backend, OLD)
        await write(place.backend, [NEW], **call, only_partitions=fence)
    assert held(store.objects) == held(free.objects)
    store.check_at_rest()


@pytest.mark.parametrize("mode", ["append", "overwrite"])
async def test_the_first_row_outside_fails_its_task_and_the_error_names_partition_guard_and_remedy(store, mode):
    await write(store.backend, OLD)
    before = {path: store.objects[path] for path in store.data_files}
    call = {**DYNAMIC, "mode": mode, "only_partitions": [YEAR, {"year": 2012}]}
    with pytest.raises(InvalidRequest) as caught:
        await write(store.backend, [NEW, STRAY], **call)
    for part in ("'year=2014/month=1'", "only_partitions=[{'year': 2013}, {'year': 2012}]", "drop such rows"):
        assert part in str(caught.value)
    assert {path: store.objects[path] for path in store.committed_files} == before
    store.check_only_commits_are_left()


async def test_no_marker_is_asked_for_a_partition_outside(staged):
    async with begin(staged.backend, only_partitions=YEAR) as job:
        markers = Markers()
        with TaskWriter(job.ticket, staged.backend, markers, task=0, pause=lambda _: None) as writer:
            (batch,) = flights([NEW, STRAY]).to_batches()
            with pytest.raises(InvalidRequest, match="year=2014"):
                writer.write(batch)
    assert markers.asked == []


async def test_a_task_that_does_not_look_is_stopped_by_the_commit(store):
    """As one of a ticket that was tampered with: the last line of defence."""
    await write(store.backend, OLD)
    before = store.committed_files
    async with begin(store.backend, **DYNAMIC, only_partitions=YEAR) as job:
        job._ticket = dataclasses.replace(job.ticket, guard=None)
        report = await write_in_thread(job, store.backend, flights([NEW, STRAY]))
        with pytest.raises(InvalidRequest, match="year=2014/month=1"):
            await job.commit([report])
    assert store.committed_files == before
    store.check_only_commits_are_left()


async def test_a_long_guard_is_not_told_in_full(staged):
    only = [{"year": year} for year in range(1000, 1300)]
    with pytest.raises(InvalidRequest, match=r"{'year': 1002}, \.\.\.\] allows") as caught:
        await write(staged.backend, [STRAY], only_partitions=only)
    assert len(str(caught.value)) < 400
