"""Each fate that a file can have, on both families of stores, and which command ends it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from tallymark.engine.errors import InvalidRequest, UnsupportedTable
from tallymark.engine.inspection.explain import paths_below
from tallymark.engine.inspection.explain_text import Explanation, filled_into, made_of
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.timeline.entry import DataFile
from tests.engine.jobs.filling import appended
from tests.engine.jobs.scene import (
    Store,
    abandon,
    begin,
    committed,
    flights,
    mark,
    name_of,
    parquet,
    publish,
    table,
    write_rows,
)
from tests.engine.jobs.test_fills import rivals
from tests.support.faulty import FaultyBackend, lost_request
from tests.support.loops import on_both_loops


async def explained(store: Store, file: str) -> Explanation:
    """Asking leaves storage as it was."""
    before = store.objects
    found = await table(store.backend).explain(file)
    assert store.objects == before
    assert str(found).startswith(found.path)
    return found


async def one_file(store: Store, **named) -> str:
    """Of a table with one commit."""
    await committed(store.backend, months={1: 3}, **named)
    (path,) = store.committed_files
    return path


def rollback_of(store: Store) -> str:
    return f"tallymark rollback {store.backend.url}"


@on_both_loops
async def test_a_committed_file_is_live_or_missing_where_somebody_deleted_it(store):
    path = await one_file(store)
    found = await explained(store, path)
    assert (found.fate, found.is_there, found.position, found.command) == ("live", True, 1, None)
    assert (found.rows, found.bytes) == (3, len(store.objects[path]))
    await store.backend.delete([path])
    found = await explained(store, path)
    assert (found.fate, found.is_there) == ("missing", False)
    assert "restored from a copy" in found.next


@on_both_loops
async def test_a_replaced_file_is_being_deleted_by_a_writer_that_lives(store):
    path = await one_file(store)
    async with begin(store.backend, "overwrite") as job:
        await job.commit([await write_rows(job, store.backend)])
        found = await explained(store, path)
    assert (found.fate, found.is_there, found.position, found.command) == ("replaced", True, 2, None)
    assert "is at work" in found.next


@pytest.mark.parametrize("made", [{}, {"readers": "table", "retain_hours": 2}], ids=["writer", "cleaner"])
async def test_a_replaced_file_that_a_dead_writer_or_an_interrupted_clean_has_left_goes_with_rollback(store, made):
    path = await one_file(store, **made)
    storage = FaultyBackend(store.backend, lost_request("delete", "month=*"))
    await committed(storage, "overwrite")
    if made:
        with pytest.raises(OSError, match="lost"):
            await table(storage).clean(retain_hours=0)
    store.clock.pass_lease()
    found = await explained(store, path)
    assert (found.fate, found.is_there, found.position, found.command) == ("replaced", True, 2, rollback_of(store))
    await table(store.backend).rollback()
    assert (await explained(store, path)).is_there is False


@on_both_loops
async def test_a_replaced_file_that_was_put_back_is_nobodys(staged):
    path = await one_file(staged)
    data = staged.objects[path]
    await committed(staged.backend, "overwrite", months={2: 1})
    await staged.backend.put(path, data)
    found = await explained(staged, path)
    assert (found.fate, found.is_there, found.command) == ("replaced", True, None)
    assert "came back" in found.why
    assert "delete it by the store's own means" in found.next


@on_both_loops
async def test_a_replaced_file_is_retained_for_readers_of_older_positions(store):
    path = await one_file(store, readers="table", retain_hours=2)
    await committed(store.backend, "overwrite", months={2: 1})
    found = await explained(store, path)
    assert (found.fate, found.is_there, found.position) == ("retained", True, 2)
    assert found.until == datetime.fromtimestamp(store.clock.now, UTC) + timedelta(hours=2)
    assert found.command == f"tallymark clean {store.backend.url} --retain-hours 0"
    await table(store.backend).clean(retain_hours=0)
    after = await explained(store, path)
    assert (after.fate, after.is_there, after.until, after.command) == ("replaced", False, None, None)
    (_, clean) = (await table(store.backend).timeline())[-1]
    assert after.next == f"It has been deleted since, by instant {clean.instant}."


@on_both_loops
async def test_a_fence_says_until_when_it_keeps_its_name(unstaged):
    async with begin(unstaged.backend) as job:
        path = f"month=1/{name_of(job, attempt=5)}"
        await mark(job, unstaged.backend, [path])
        await job.commit([await write_rows(job, unstaged.backend)])
    found = await explained(unstaged, path)
    assert (found.fate, found.is_there, found.instant, found.position) == ("fence", True, job.instant, 1)
    assert found.until == datetime.fromtimestamp(unstaged.clock.now, UTC) + timedelta(days=1)
    unstaged.clock.now += 24 * 3600
    await table(unstaged.backend).clean()
    found = await explained(unstaged, path)
    assert (found.fate, found.is_there, found.position) == ("left out", False, 1)


@on_both_loops
async def test_a_lost_attempt_is_gone_where_files_are_renamed_into_place(staged):
    async with begin(staged.backend) as job:
        lost = await write_rows(job, staged.backend, {1: 1}, attempt=5)
        await job.commit([await write_rows(job, staged.backend)])
    found = await explained(staged, lost.files[0].path)
    assert (found.fate, found.is_there, found.position) == ("left out", False, 1)


@on_both_loops
async def test_a_file_of_an_open_instant_is_uncommitted_while_its_writer_lives(store):
    async with begin(store.backend) as job:
        report = await write_rows(job, store.backend)
        found = await explained(store, report.files[0].path)
        await job.commit([report])
    assert (found.fate, found.is_there, found.instant, found.position) == ("uncommitted", True, job.instant, None)
    assert "is at work" in found.next
    assert found.command is None


async def test_a_file_that_a_dead_writer_has_left_goes_with_rollback(store):
    instant = await abandon(store)
    store.clock.pass_lease()
    path, *_ = sorted(store.data_files)
    found = await explained(store, path)
    assert (found.fate, found.is_there, found.instant) == ("uncommitted", True, instant)
    assert "is dead" in found.next
    assert found.command == rollback_of(store)
    await table(store.backend).rollback()
    after = await explained(store, path)
    assert (after.fate, after.is_there, after.command) == ("rolled back", False, None)


@on_both_loops
async def test_a_marked_file_that_is_not_there_may_be_on_its_way(staged):
    async with begin(staged.backend) as job:
        path = f"month=1/{name_of(job)}"
        await mark(job, staged.backend, [path])
        found = await explained(staged, path)
        unmarked = await explained(staged, f"month=1/{name_of(job)}")
    assert (found.fate, found.is_there) == ("marked", False)
    assert (unmarked.fate, unmarked.is_there) == ("unknown", False)
    assert "has not marked it" in unmarked.why


@on_both_loops
async def test_a_rolled_back_file_that_came_back_is_nobodys(staged):
    async with begin(staged.backend) as job:
        report = await write_rows(job, staged.backend)
    path = report.files[0].path
    await staged.backend.put(path, parquet(flights({1: 1})))
    found = await explained(staged, path)
    assert (found.fate, found.is_there, found.position, found.command) == ("rolled back", True, 1, None)


@on_both_loops
async def test_files_of_others_are_unknown_and_nothing_touches_them(staged):
    await one_file(staged)
    elsewhere = f"month=1/{uuid4()}-0_0-0-0_20010101000000000.parquet"
    for path in ("month=1/part-0000.parquet", "README.txt", elsewhere):
        await staged.backend.put(path, b"PAR1")
        found = await explained(staged, path)
        assert (found.fate, found.is_there, found.command) == ("unknown", True, None)
    assert "another table" in (await explained(staged, elsewhere)).why
    assert (await explained(staged, "month=1/absent.parquet")).is_there is False


@on_both_loops
async def test_every_bookkeeping_file_of_a_job_is_known_by_its_purpose(store):
    await committed(store.backend)
    async with begin(store.backend) as job:
        await mark(job, store.backend, [f"month=1/{name_of(job, attempt=5)}"])
        await job.commit([await write_rows(job, store.backend)])
        for path in store.objects.keys() - store.data_files:
            found = await explained(store, path)
            assert (path, found.fate, found.is_there) == (path, "bookkeeping", True)
            assert found.why
    for path in store.objects.keys() - store.data_files:
        found = await explained(store, path)
        assert found.fate == "bookkeeping"
        assert "stays" in found.next or "/fence/" in path


@on_both_loops
async def test_bookkeeping_that_nobody_holds_goes_with_clean_and_what_lies_there_and_is_of_nobody_is_unknown(staged):
    result = await committed(staged.backend)
    path = f".hoodie/.tallymark/seal/{result.instant}"
    await staged.backend.put(path, b"")
    found = await explained(staged, path)
    assert (found.fate, found.command) == ("bookkeeping", f"tallymark clean {staged.backend.url}")
    await table(staged.backend).clean()
    assert (await explained(staged, path)).next == "It is not there."
    for path in (".hoodie/notes.txt", ".hoodie/20010101000000000.commit", ".hoodie/.tallymark/log/99"):
        assert (await explained(staged, path)).fate == "unknown"


@on_both_loops
async def test_a_bare_name_is_enough(store):
    path = await one_file(store)
    assert (await explained(store, path.rpartition("/")[2])).path == path
    async with begin(store.backend) as job:
        open_path = f"month=2/{name_of(job)}"
        await mark(job, store.backend, [open_path])
        found = await explained(store, open_path.rpartition("/")[2])
    assert (found.path, found.fate) == (open_path, "marked")


@on_both_loops
async def test_a_table_without_partitions_is_not_listed(staged):
    async with begin(staged.backend, partition_by=[]) as job:
        path = name_of(job)
        await mark(job, staged.backend, [path])
        file = publish(job.ticket, staged.backend, path, flights())
        await job.commit([TaskReport(instant=job.instant, task=0, attempt=0, files=(file,))])
    assert (await table(staged.faulty).explain(path)).fate == "live"
    assert "" not in staged.faulty.paths("list")


@on_both_loops
async def test_explaining_needs_a_table_and_a_file_below_it(staged):
    with pytest.raises(UnsupportedTable, match="holds no table yet"):
        await table(staged.backend).explain("a.parquet")
    await committed(staged.backend)
    with pytest.raises(InvalidRequest, match="does not lie below"):
        await table(staged.backend).explain("s3://elsewhere/a.parquet")


FILE = "month=1/a.parquet"


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("file:///lake/flights", FILE),
        ("file:///lake/flights", f"./{FILE}"),
        ("file:///lake/flights", f"/lake/flights/{FILE}"),
        ("file:///lake/flights", f"file:/lake/flights/{FILE}"),
        ("file:///lake/my%20flights", f"/lake/my flights/{FILE}"),
        ("file:///lake/my%20flights", f"file:///lake/my%20flights/{FILE}"),
        ("s3://bucket/flights", f"s3a://bucket/flights/{FILE}"),
        ("s3://bucket", f"s3://bucket/{FILE}"),
        ("hdfs://node:8020/flights", f"hdfs://node:8020/flights/{FILE}"),
    ],
)
def test_a_file_is_named_by_its_path_or_by_its_url(url, text):
    assert paths_below(url, text) == (FILE,)


def test_percent_signs_of_partition_paths_are_told_from_those_of_urls():
    assert paths_below("file:///lake", "p=a%3Ab/f") == ("p=a%3Ab/f",)
    assert paths_below("file:///lake", "file:///lake/p=a%253Ab/f")[0] == "p=a%3Ab/f"
    assert paths_below("file:///lake", "/lake/p=a%3Ab/f")[0] == "p=a%3Ab/f"
    assert set(paths_below("s3://lake/t", "s3a://lake/t/p=a%253Ab/f")) == {"p=a%3Ab/f", "p=a%253Ab/f"}


@pytest.mark.parametrize(
    "text",
    ["/lake/flights", "/lake/flights2/a.parquet", "s3://lake/flights/a.parquet", "../a", "/lake/flights/../a", ""],
)
def test_what_does_not_lie_below_the_table_is_refused_by_name(text):
    with pytest.raises(InvalidRequest, match=f"{text!r}"):
        paths_below("file:///lake/flights", text)


async def live(store: Store) -> dict[str, DataFile]:
    """By partition, which have one file each."""
    return {file.partition: file for file in (await table(store.backend).snapshot()).files}


@on_both_loops
async def test_a_filled_file_says_where_its_rows_went_and_that_one_what_it_was_made_of(store):
    await appended(store.backend, {1: [1, 2], 2: [3]})
    old = (await live(store))["month=1"]
    await appended(store.backend, {1: [4], 2: [5, 6, 7]})
    new = (await live(store))["month=1"]
    gone, made = await explained(store, old.path), await explained(store, new.path)
    assert (gone.fate, gone.is_there, gone.position) == ("replaced", False, 2)
    assert gone.filled_into == (new.path,)
    assert f"filled by instant {made.instant} at position 2: its rows went into {new.path}." in gone.why
    assert (made.fate, made.made_of, made.rewritten_bytes) == ("live", (old.path,), old.bytes)
    assert f"It was made by filling {old.path} (2 rows, {old.bytes} B)" in made.why
    assert f"{old.bytes} B were written once more to come to it, {old.bytes / new.bytes:.2f} for each byte" in made.why


@on_both_loops
async def test_a_file_that_was_filled_again_says_both_and_one_that_an_overwrite_replaced_went_into_none(unstaged):
    paths = []
    for flight in range(3):
        await appended(unstaged.backend, {1: [flight]})
        paths.append((await live(unstaged))["month=1"].path)
    first, second, third = paths
    found = await explained(unstaged, second)
    assert (found.made_of, found.filled_into) == ((first,), (third,))
    assert first in found.why
    assert third in found.why
    await committed(unstaged.backend, "overwrite", {1: 5})
    (replacing,) = (await live(unstaged)).values()
    await committed(unstaged.backend, "overwrite", {1: 5})
    found = await explained(unstaged, replacing.path)
    assert (found.filled_into, found.made_of, found.rewritten_bytes) == ((), (), 0)
    assert "replaced by instant" in found.why


@on_both_loops
async def test_the_new_rows_of_a_lost_fill_were_made_of_nothing(unstaged):
    async with rivals(unstaged) as (job, report, _):
        await job.commit([report])
    files = (await table(unstaged.backend).snapshot()).files
    own = next(file for file in files if file.path.endswith(f"{job.instant}.parquet"))
    assert (await explained(unstaged, own.path)).made_of == ()
    lost = await explained(unstaged, report.files[0].path)
    assert (lost.fate, lost.filled_into) == ("left out", ())
    assert "whose fill was lost" in lost.why


@on_both_loops
async def test_of_small_files_that_the_log_does_not_tell_apart_each_is_named(unstaged):
    await appended(unstaged.backend, {1: [1], 2: [2]})
    await appended(unstaged.backend, {1: [3], 2: [4]})
    (_, first), (_, entry) = await table(unstaged.backend).timeline()
    one = next(file for file in entry.added if file.partition == "month=1")
    old = next(file for file in first.added if file.partition == "month=1")
    twin, other = replace(old, name="twin.parquet"), replace(one, name="other.parquet")
    doubled = replace(entry, added=(*entry.added, other), removed=(*entry.removed, twin))
    assert made_of(one, doubled) == (old, twin)
    assert filled_into(old, doubled) == (one, other)
    assert made_of(replace(one, partition="month=3"), doubled) == ()


@on_both_loops
async def test_a_retained_file_that_was_filled_says_so_too(unstaged):
    await appended(unstaged.backend, {1: [1]}, readers="table")
    old = (await live(unstaged))["month=1"]
    await appended(unstaged.backend, {1: [2]})
    found = await explained(unstaged, old.path)
    assert (found.fate, found.is_there) == ("retained", True)
    assert found.filled_into == ((await live(unstaged))["month=1"].path,)
