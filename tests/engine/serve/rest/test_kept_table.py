"""What a table that is queried again and again reads, and what it reads no more."""

import math

import pytest

from tallymark.engine.documents.timeline import read_timeline
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.serve.rest.kept_table import GROUP
from tallymark.engine.serve.rest.lake_table import LakeTable
from tallymark.engine.serve.rest.live_jobs import LiveJobs
from tallymark.engine.settings import CommitSettings, MarkerSettings, ViewSettings
from tests.engine.jobs.scene import Store, begin, committed, name_of, table, write_rows
from tests.support.loops import on_both_loops, on_virtual_time

COMMITS = 3 * GROUP


def lake_table(store: Store) -> LakeTable:
    return LakeTable("memory:", store.faulty, None, ViewSettings(), LiveJobs())


async def written(commits: int = COMMITS) -> Store:
    """Return a store whose log is read from a checkpoint at its end."""
    store = Store(has_staging=True)
    for _ in range(commits):
        await committed(store.backend)
    await table(store.backend).checkpoint()
    return store


def entries_read(store: Store) -> list[int]:
    """Return the positions that were read since the last call."""
    found = [path for path in store.faulty.paths("get") if path.startswith(".hoodie/.tallymark/log/")]
    store.faulty.calls.clear()
    positions = [int(path.rpartition("/")[2]) for path in found]
    return sorted(position for position in positions if position < COMMITS)


@on_both_loops
async def test_an_entry_that_was_read_is_not_read_again():
    store = await written()
    where = lake_table(store)
    first = await where.timeline(last=5)
    assert first == {**await read_timeline(table(store.backend), last=5), "url": where.url}
    entries_read(store)
    assert await where.timeline(last=5) == first
    assert entries_read(store) == []
    assert (await where.timeline(last=7))["entries"][2:] == first["entries"]
    assert entries_read(store) == [COMMITS - 6, COMMITS - 5]
    await committed(store.backend)
    assert [each["position"] for each in (await where.timeline(last=2))["entries"]] == [COMMITS, COMMITS + 1]


@on_both_loops
async def test_entries_in_the_middle_that_were_read_are_not_read_again():
    store = await written()
    where = lake_table(store)
    await where.timeline(after=4, last=2)
    entries_read(store)
    found = await where.timeline(after=2, last=7)
    assert found["entries"] == (await read_timeline(table(store.backend), after=2, last=7))["entries"]
    assert entries_read(store) == [3, 4, 7, 8, 9]


@on_virtual_time
async def test_entries_that_take_longer_than_a_page_waits_are_on_a_later_one():
    store = await written()
    where = lake_table(store)
    pages = [
        [each["position"] for each in (await where.timeline(last=COMMITS, within_s=0))["entries"]] for _ in range(5)
    ]
    assert [len(page) for page in pages] == [GROUP, GROUP, GROUP, GROUP, GROUP]
    assert pages[0] == list(range(COMMITS - GROUP + 1, COMMITS + 1))
    later = await where.timeline(last=COMMITS, within_s=1)
    assert len(later["entries"]) == COMMITS


@on_both_loops
async def test_entries_that_are_archived_since_they_were_read_are_not_shown():
    store = await written()
    where = lake_table(store)
    await where.timeline(last=COMMITS)
    short = CommitSettings(log_entry_count=2, timeline_commit_count=2)
    async with begin(table(store.backend, views=ViewSettings(checkpoint_entries=1), commit=short)) as job:
        await job.commit([await write_rows(job, store.backend)])
    for last, within_s in ((COMMITS, math.inf), (COMMITS, 0)):
        found = await where.timeline(last=last, within_s=within_s)
        assert len(found["entries"]) == 2
        assert found["entries"] == (await read_timeline(table(store.backend), last=last))["entries"]
    with pytest.raises(InvalidRequest, match="archived"):
        await where.timeline(after=1, last=5)


@on_both_loops
async def test_markers_are_those_after_a_path_in_the_order_of_paths():
    store = await written(1)
    async with begin(store.backend, markers=MarkerSettings(interval_s=0)) as job:
        paths = [f"month=1/{name_of(job, task=task)}" for task in range(4)]
        paths.append(f"month=2/{name_of(job)}")
        await job._directory.create(*paths[:3])
        where = lake_table(store)
        assert len((await where.markers(job.instant))["markers"]) == 3
        await job._directory.create(*paths[3:])
        await where.jobs(max_age_s=0)
        found = [each["path"] for each in (await where.markers(job.instant))["markers"]]
        assert found == sorted(paths)
        page = await where.markers(job.instant, after=found[1], limit=2)
        assert [each["path"] for each in page["markers"]] == found[2:4]
        loss = await where.loss(job.instant)
    assert (loss["files"], loss["partitions"][0]) == (5, {"partition": "month=1", "files": 4})
