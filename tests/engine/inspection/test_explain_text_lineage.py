"""What explain says of small files that were filled, and of the files that were made of them."""

from dataclasses import replace

from tallymark.engine.inspection.explain_text import filled_into, made_of
from tallymark.engine.timeline.entry import DataFile
from tests.engine.inspection.test_explain import explained
from tests.engine.jobs.filling import appended
from tests.engine.jobs.scene import Store, committed, table
from tests.engine.jobs.test_fills import rivals
from tests.support.loops import on_both_loops


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
async def test_a_file_that_was_filled_again_says_both(unstaged):
    paths = []
    for flight in range(3):
        await appended(unstaged.backend, {1: [flight]})
        paths.append((await live(unstaged))["month=1"].path)
    first, second, third = paths
    found = await explained(unstaged, second)
    assert (found.made_of, found.filled_into) == ((first,), (third,))
    assert first in found.why
    assert third in found.why


@on_both_loops
async def test_a_file_that_an_overwrite_replaced_went_into_none(unstaged):
    await appended(unstaged.backend, {1: [1]})
    old = (await live(unstaged))["month=1"]
    await committed(unstaged.backend, "overwrite", {1: 5})
    found = await explained(unstaged, old.path)
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
