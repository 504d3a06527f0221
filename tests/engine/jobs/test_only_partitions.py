"""The guard: a write that would touch anything outside is refused as soon as that is known, and nothing is changed."""

import dataclasses
from typing import Any

import pytest

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.tasks.task_writer import TaskWriter
from tests.engine.jobs.scene import FAMILIES, Store, write_in_thread
from tests.engine.jobs.yearly import OLD, begin, flights, held, write
from tests.engine.tasks.scene import Markers
from tests.support.loops import on_both_loops

families = pytest.mark.parametrize("has_staging", FAMILIES, ids=["staging", "no_staging"])

YEAR = {"year": 2013}
MONTHS = [{"year": 2013, "month": 1}, {"year": 2013, "month": 2}]
NEW = (9, 2013, 1)
STRAY = (10, 2014, 1)
DYNAMIC: dict[str, Any] = {"mode": "overwrite", "partition_overwrite": "dynamic"}

Part = dict[str, Any]
ALLOWED: dict[str, tuple[Part, Part | list[Part]]] = {
    "append": ({"mode": "append"}, YEAR),
    "append to a part": ({"mode": "append", "partition": YEAR}, MONTHS),
    "dynamic": (DYNAMIC, YEAR),
    "dynamic, one of several": (DYNAMIC, MONTHS),
    "dynamic below a part": ({**DYNAMIC, "partition": YEAR}, MONTHS),
    "static of the very part": ({"mode": "overwrite", "partition": YEAR}, YEAR),
    "static of one of several": ({"mode": "overwrite", "partition": MONTHS[0]}, MONTHS),
    "static below": ({"mode": "overwrite", "partition": MONTHS[0]}, [{"year": 2012}, YEAR]),
}


@families
@pytest.mark.parametrize("case", ALLOWED)
@on_both_loops
async def test_what_stays_inside_is_written_as_without_a_guard(has_staging, case):
    call, only = ALLOWED[case]
    guarded, free = Store(has_staging=has_staging), Store(has_staging=has_staging)
    for store, fence in ((guarded, only), (free, None)):
        await write(store.backend, OLD)
        await write(store.backend, [NEW], **call, only_partitions=fence)
    assert held(guarded.objects) == held(free.objects)
    guarded.check_at_rest()


REFUSED: dict[str, tuple[Part, Any, str]] = {
    "all of the table": (
        {"mode": "overwrite"},
        YEAR,
        "replaces the whole table.*partition_overwrite='dynamic'.*or allow more",
    ),
    "more than one": ({"mode": "overwrite", "partition": YEAR}, MONTHS, "replaces all of partition={'year': 2013}"),
    "another": ({"mode": "overwrite", "partition": {"year": 2014}}, YEAR, "all of partition={'year': 2014}"),
    "another, appended": (
        {"mode": "append", "partition": {"year": 2014}},
        YEAR,
        "nothing there.*name a partition that it allows",
    ),
    "one that looks alike": ({"mode": "append", "partition": {"year": 20130}}, YEAR, "allows nothing there"),
    "guard of another type": ({"mode": "append"}, {"year": "2013"}, "only_partitions=.*'2013' is a str; give an int"),
    "guard that is no prefix": ({"mode": "append"}, [YEAR, {"month": 1}], "only_partitions={'month': 1} leaves out"),
    "guard of nothing": ({"mode": "append"}, [], r"only_partitions=\[\]: give one part"),
    "empty guard": ({"mode": "append"}, {}, "only_partitions={}: give values"),
    "guard as text": ({"mode": "append"}, "year=2013", "only_partitions='year=2013': give one part"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("exists", [True, False], ids=["existing", "new"])
@on_both_loops
async def test_what_is_outside_from_the_start_is_refused_at_the_call(unstaged, case, exists):
    call, only, says = REFUSED[case]
    if exists:
        await write(unstaged.backend, OLD)
    before = (unstaged.objects, unstaged.modified)
    with pytest.raises(InvalidRequest, match=says):
        await write(unstaged.backend, [NEW], **call, only_partitions=only)
    assert (unstaged.objects, unstaged.modified) == before


@pytest.mark.parametrize("mode", ["append", "overwrite"])
@on_both_loops
async def test_the_first_row_outside_fails_its_task_and_the_error_names_partition_guard_and_remedy(store, mode):
    await write(store.backend, OLD)
    before = {path: store.objects[path] for path in store.data_files}
    with pytest.raises(InvalidRequest) as caught:
        await write(
            store.backend, [NEW, STRAY], mode, partition_overwrite="dynamic", only_partitions=[YEAR, {"year": 2012}]
        )
    for part in ("'year=2014/month=1'", "only_partitions=[{'year': 2013}, {'year': 2012}]", "drop such rows"):
        assert part in str(caught.value)
    assert {path: store.objects[path] for path in store.committed_files} == before
    store.check_only_commits_are_left()


@on_both_loops
async def test_no_marker_is_asked_for_a_partition_outside(staged):
    async with begin(staged.backend, only_partitions=YEAR) as job:
        markers = Markers()
        with TaskWriter(job.ticket, staged.backend, markers, task=0, pause=lambda _: None) as writer:
            (batch,) = flights([NEW, STRAY]).to_batches()
            with pytest.raises(InvalidRequest, match="year=2014"):
                writer.write(batch)
    assert markers.asked == []


@on_both_loops
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


@on_both_loops
async def test_a_long_guard_is_not_told_in_full(staged):
    only = [{"year": year} for year in range(1000, 1300)]
    with pytest.raises(InvalidRequest, match=r"{'year': 1002}, \.\.\.\] allows") as caught:
        await write(staged.backend, [STRAY], only_partitions=only)
    assert len(str(caught.value)) < 400
