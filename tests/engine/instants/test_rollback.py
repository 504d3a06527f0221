"""Rollback and reconciliation by markers, among them the cases of Hudi's own tests of it."""

from collections.abc import Callable
from itertools import product

import anyio
import pytest

from tallymark.backends.errors import AlreadyExists, NotFound, NotPermitted, Unavailable
from tallymark.engine.markers.segment import marker_folder
from tallymark.engine.settings import MarkerSettings
from tests.engine.jobs.scene import Store, abandon, begin, committed, die, mark, name_of, table, write_rows
from tests.support.faulty import FaultyBackend, lost_answer, refused, slow

kinds = pytest.mark.parametrize("kind", ["batched", "direct"])


async def test_a_rollback_reads_each_segment_once_and_many_at_a_time(staged):
    async with begin(staged.faulty, markers=MarkerSettings(merge_bytes_ratio_max=1)) as job:
        for number in range(33):
            await mark(job, staged.faulty, [f"month=1/{name_of(job, task=number)}"])
        die(staged.faulty)
    slowly = table(FaultyBackend(staged.backend, slow("get", 1.0, "*/MARKERS1*")))
    began = anyio.current_time()
    (ended,) = await slowly.rollback(job.instant)
    assert ended.marked == 33
    assert anyio.current_time() - began == 2.0, "33 segments, 32 at a time"


@kinds
async def test_a_rollback_removes_what_was_marked_and_a_marked_file_that_never_was_is_fine(store, kind):
    """The first commit wrote partA/f0; the second marked partA/f0', partB/f1 and partA/f2, which does not exist."""
    await committed(store.backend, months={1: 3})
    kept = store.data_files
    async with begin(store.faulty, markers=MarkerSettings(kind=kind)) as job:
        await write_rows(job, store.faulty, {1: 1, 2: 1})
        await mark(job, store.faulty, [f"month=1/{name_of(job, attempt=2)}"])
        die(store.faulty)
    (ended,) = await table(store.backend).rollback(job.instant)
    assert (ended.instant, ended.outcome, ended.marked) == (job.instant, "rolled back", 3)
    assert ended.fences == (0 if store.backend.has_staging else 1), "two had landed, and nothing can land on them again"
    assert store.data_files - store.fences == kept
    store.check_only_commits_are_left()


@pytest.mark.parametrize("error", [NotPermitted("no"), Unavailable("silence")], ids=repr)
async def test_an_extra_file_that_cannot_be_deleted_stops_the_commit(store, error):
    """It would be read as data for ever."""
    async with begin(store.faulty) as job:
        await write_rows(job, store.faulty, attempt=0)
        winner = await write_rows(job, store.faulty, attempt=1)
        store.faulty.add(refused("delete", "month=*", error=error))
        with pytest.raises(type(error)):
            await job.commit([winner])
        assert store.decisions == {}
        store.faulty.heal()
        await job.commit([winner])
    store.check_at_rest()


DAMAGES: dict[str, tuple[str, Callable[[bytes], bytes | None]]] = {
    "no type": ("MARKERS.type", lambda _: None),
    "empty type": ("MARKERS.type", lambda _: b""),
    "no folder": ("", lambda _: None),
    "unreadable segment": ("MARKERS1080000000", lambda _: b"\xff\xff\n"),
}
SEGMENT_DAMAGES: dict[str, tuple[str, Callable[[bytes], bytes | None]]] = {
    "empty": ("MARKERS1", lambda _: b""),
    "one byte short": ("MARKERS1", lambda data: data[:-1]),
    "a third short": ("MARKERS1", lambda data: data[: 2 * len(data) // 3]),
    "missing": ("MARKERS1", lambda _: None),
}


async def damage_markers(store: Store, instant: str, damage: str) -> None:
    """Damage those of the instant, or put a damaged one beside them."""
    name, change = {**DAMAGES, **SEGMENT_DAMAGES}[damage]
    start = f"{marker_folder(instant)}/{name}"
    for path in [path for path in store.objects if path.startswith(start)] or [start]:
        damaged = change(store.objects.get(path, b""))
        await store.backend.delete([path])
        if damaged is not None:
            await store.backend.put(path, damaged)


@pytest.mark.parametrize(
    ("kind", "damage"),
    [*product(["batched", "direct"], DAMAGES), *product(["batched"], SEGMENT_DAMAGES)],
)
async def test_markers_that_are_missing_or_unreadable_are_not_treated_as_none(store, kind, damage, caplog):
    await committed(store.backend)
    kept = store.data_files
    left = await abandon(store, kind)
    before = store.objects
    await damage_markers(store, left, damage)
    assert store.objects != before
    (ended,) = await table(store.backend).rollback(left)
    assert ended.marked == 2
    assert "markers.unreadable" in caplog.text
    assert store.data_files - store.fences == kept
    store.check_no_bookkeeping()


async def test_markers_that_another_rollback_has_deleted_are_not_damaged(store, caplog):
    caplog.set_level("INFO")
    await committed(store.backend)
    left = await abandon(store)
    late = FaultyBackend(store.backend, slow("list", 60.0, marker_folder(left)))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(table(late).rollback, left)
        await anyio.sleep(1.0)
        await table(store.backend).rollback(left)
    assert {record.levelname for record in caplog.records if "markers.unreadable" in record.message} == {"INFO"}
    store.check_at_rest()


@kinds
@pytest.mark.parametrize("damage", ["no type", "empty type"])
async def test_markers_that_can_be_read_are_fenced_also_where_others_may_be_missing(unstaged, kind, damage):
    """A listing finds what has landed; the name of a file that is still on its way is known from its marker only."""
    async with begin(unstaged.faulty, markers=MarkerSettings(kind=kind)) as job:
        await mark(job, unstaged.faulty, [on_its_way := f"month=1/{name_of(job)}"])
        die(unstaged.faulty)
    await damage_markers(unstaged, job.instant, damage)
    await table(unstaged.backend).rollback(job.instant)
    assert on_its_way in unstaged.fences
    with pytest.raises(AlreadyExists):
        await unstaged.backend.put_new(on_its_way, b"late")


async def test_listing_by_instant_spares_files_of_others_and_strangers(store):
    left = await abandon(store)
    strangers = {f"month=1/notes_{left}.txt", f"month=1/x_0-0-0_{left}.parquet", f"part-0_{left}.parquet"}
    for path in strangers:
        await store.backend.put(path, b"mine")
    await store.backend.delete([f"{marker_folder(left)}/MARKERS.type"])
    await table(store.backend).rollback(left)
    assert strangers <= set(store.objects)


async def test_nothing_is_deleted_before_the_rollback_entry_stands_nor_markers_read_before_staging_is_closed(store):
    left = await abandon(store)
    await table(store.faulty).rollback(left)
    calls = [(call.verb, path) for call in store.faulty.calls for path in call.paths]
    entry = next(index for index, (verb, path) in enumerate(calls) if verb == "put_new" and "/log/" in path)
    touched = [
        index
        for index, (verb, path) in enumerate(calls)
        if (verb in ("delete", "close_staging") and "probe" not in path) or (verb == "put_new" and "month=" in path)
    ]
    assert touched
    assert entry < min(touched)
    if store.backend.has_staging:  # whatever was published by then was marked by then
        verbs = [verb for verb, path in calls if path.startswith(marker_folder(left))]
        assert verbs.index("close_staging") < verbs.index("list")


async def test_a_writer_who_wins_its_entry_while_it_is_rolled_back_stays_committed(unstaged):
    """Finding 1: the rescuer saw it pending, and deletes nothing that the log does not let it."""
    rescuer = FaultyBackend(unstaged.backend, slow("put_new", 5, "*/log/*"))
    async with begin(unstaged.backend) as job:
        report = await write_rows(job, unstaged.backend)
        unstaged.clock.pass_lease()
        ended = []

        async def rescue() -> None:
            ended.extend(await table(rescuer).rollback())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(rescue)
            await anyio.sleep(1)
            await job.commit([report])
    assert [each.outcome for each in ended] == ["was committed"]
    assert unstaged.committed_files == {file.path for file in report.files}
    unstaged.check_at_rest()


async def test_a_fence_is_told_from_a_landed_file_when_the_fencing_is_repeated(unstaged):
    async with begin(unstaged.faulty) as job:
        await mark(job, unstaged.faulty, [f"month=1/{name_of(job, attempt=3)}"])
        winner = await write_rows(job, unstaged.faulty, attempt=4)
        unstaged.faulty.add(lost_answer("put", ".hoodie/.tallymark/fence/*"))
        with pytest.raises(Unavailable):
            await job.commit([winner])
        unstaged.faulty.heal()
        result = await job.commit([winner])
    assert result.fences == 1
    unstaged.check_at_rest()


async def test_a_landed_file_that_somebody_else_deletes_meanwhile_is_fine(unstaged):

    class Deleting(FaultyBackend):
        async def get(self, path: str) -> bytes:
            if path.endswith(".parquet"):
                await self.inner.delete([path])
            return await super().get(path)

    storage = Deleting(unstaged.backend)
    async with begin(storage) as job:
        report = await write_rows(job, storage)
    assert all(file.path not in unstaged.objects for file in report.files)
    with pytest.raises(NotFound):
        await storage.get(report.files[0].path)
    unstaged.check_only_commits_are_left()


async def test_bytes_at_a_marked_name_that_are_no_parquet_are_removed_too(store):
    """Half a file of a store that shows such, or somebody's own."""
    async with begin(store.backend) as job:
        path = f"month=1/{name_of(job)}"
        await mark(job, store.backend, [path])
        await store.backend.put(path, b"PAR1 and no more")
    assert path not in store.objects
    store.check_no_bookkeeping()
