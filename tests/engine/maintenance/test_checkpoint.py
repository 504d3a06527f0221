"""Checkpoints that jobs leave at their end, and what begins at them."""

import anyio
import pytest

from tallymark.backends import Backend
from tallymark.engine.settings import MarkerSettings, ViewSettings
from tallymark.engine.views.checkpoint_format import (
    CHECKPOINT_FOLDER,
    POINTER,
    Manifest,
    decode_manifest,
    decode_pointer,
)
from tests.engine.jobs.deaths import copied, each_death, told_where
from tests.engine.jobs.scene import FAMILIES, Store, begin, table, write_rows
from tests.support.faulty import FaultyBackend, hanging, refused, slow

OFTEN = ViewSettings(checkpoint_entries=1)
BATCHED = MarkerSettings()


def checkpoints(store: Store) -> set[str]:
    return {path for path in store.objects if path.startswith(CHECKPOINT_FOLDER)}


def newest(store: Store) -> Manifest:
    name = decode_pointer(store.objects[POINTER])[0]
    return decode_manifest(store.objects[f"{CHECKPOINT_FOLDER}/{name}"], name=name)


async def damage_parts(store: Store) -> None:
    for part in newest(store).parts:
        await store.backend.put(part.path, b"damaged")


async def write(backend: Backend, mode: str = "append", months=None, *, views: ViewSettings = OFTEN, **named) -> None:
    async with begin(table(backend, views=views), mode, **named) as job:
        await job.commit([await write_rows(job, backend, months)])


async def some_history(store: Store) -> None:
    """Two appends, an overwrite, a rolled-back job and an append; a checkpoint each."""
    await write(store.backend, months={1: 2, 2: 2}, readers="table")
    await write(store.backend, months={3: 1}, txn="etl:1")
    await write(store.backend, "overwrite", {1: 3}, partition_overwrite="dynamic")
    async with begin(table(store.backend, views=OFTEN)) as job:
        await write_rows(job, store.backend)
    await write(store.backend, months={2: 1})


@pytest.mark.parametrize(
    ("settings", "left"),
    [({"checkpoint_entries": 3}, [0, 0, 3, 3, 3, 6, 6]), ({}, [0] * 7 + [8] * 5)],
    ids=["once enough entries were added", "the first one early"],
)
async def test_a_job_leaves_a_checkpoint_when_it_is_due(store, settings, left):
    for position in left:
        await write(store.backend, views=ViewSettings(**settings))
        assert (newest(store).position if checkpoints(store) else 0) == position
    store.check_at_rest()


async def test_old_positions_instants_the_timeline_and_what_is_due_are_reported_as_without_one(unstaged):
    await some_history(unstaged)
    plain = copied(unstaged)
    await plain.backend.delete(sorted(checkpoints(plain)))

    async def reported(backend: Backend) -> list[object]:
        reader = table(backend)
        timeline = await reader.timeline()
        snapshots = [await reader.snapshot(as_of=position) for position in range(6)]
        instants = [await reader.snapshot(as_of=entry.instant) for _, entry in timeline if entry.kind == "commit"]
        explained = [str(await reader.explain(path)) for path in sorted(plain.objects) if "/body/" not in path]
        gone = await reader.clean(retain_hours=0, dry_run=True)
        plan = await reader.plan(mode="overwrite", partition={"month": 3}, base=2)
        assert (gone.files, gone.horizon, [file.partition for file in plan.removed]) == (1, 3, ["month=3"])
        return [timeline, snapshots, instants, explained, await reader.status(), await reader.partitions(), gone, plan]

    assert await reported(unstaged.backend) == await reported(plain.backend)


async def test_a_txn_from_before_a_checkpoint_counts_as_without_one(unstaged):
    await some_history(unstaged)
    async with begin(table(unstaged.backend, views=OFTEN), txn="etl:1") as job:
        assert job.committed is not None
        assert job.committed.position == 2
    assert (await table(unstaged.backend).clean(retain_hours=0)).files == 1
    unstaged.check_at_rest()


async def test_a_checkpoint_is_put_after_the_projection_of_all_that_it_covers(unstaged):
    """An earlier writer has died between its entry and the projection of that."""
    await write(unstaged.backend)
    async with begin(table(unstaged.faulty, views=OFTEN)) as job:
        report = await write_rows(job, unstaged.faulty)
        unstaged.faulty.add(refused("put_new", ".hoodie/2*"))
        await job.commit([report])
    assert newest(unstaged).position == 1
    await table(unstaged.backend).checkpoint()
    assert newest(unstaged).position == 2
    unstaged.check_projection()


@pytest.mark.parametrize("fault", [refused("put", f"{CHECKPOINT_FOLDER}/*"), hanging("put", f"{CHECKPOINT_FOLDER}/*")])
async def test_a_job_that_can_leave_no_checkpoint_is_committed_all_the_same(unstaged, fault, caplog):
    await write(FaultyBackend(unstaged.backend, fault))
    assert "checkpoint.postponed" in caplog.text
    assert len(unstaged.committed_files) == 2
    unstaged.check_at_rest()


async def test_a_job_is_answered_before_its_checkpoint_is_begun(unstaged):
    storage = FaultyBackend(unstaged.backend, slow("put", 10, f"{CHECKPOINT_FOLDER}/*"))
    async with begin(table(storage, views=OFTEN)) as job:
        report = await write_rows(job, storage)
        before = anyio.current_time()
        await job.commit([report])
        assert anyio.current_time() == before


async def test_one_that_is_asked_for_takes_the_place_of_one_with_a_damaged_part(unstaged):
    """A job that had no need of that part would go on with it, and every reader of it read the whole log."""
    await some_history(unstaged)
    await damage_parts(unstaged)
    assert (await table(unstaged.backend).checkpoint()).parts_written > 0
    files = {file.path for file in (await table(unstaged.faulty).snapshot()).files}
    assert files == unstaged.committed_files
    assert b"damaged" not in {unstaged.objects.get(path) for path in unstaged.faulty.paths("get")}
    assert (await table(unstaged.backend).checkpoint()).parts_written == 0
    unstaged.check_at_rest()


async def test_a_clean_sweeps_what_belongs_to_no_checkpoint_once_a_newer_one_is_there(unstaged):
    for _ in range(2):
        await write(unstaged.backend)
    early, late = (f"{CHECKPOINT_FOLDER}/{position:020d}-dead.0" for position in (1, 9))
    for path in (early, late):
        await unstaged.backend.put(path, b"of a dead writer")
    named = checkpoints(unstaged) - {early, late}
    await table(unstaged.backend).clean()
    assert checkpoints(unstaged) == named | {late}


async def test_a_clean_leaves_alone_what_takes_the_place_of_a_damaged_one(unstaged):
    await some_history(unstaged)
    await damage_parts(unstaged)

    class Cleaned(FaultyBackend):
        async def put(self, path: str, data: bytes) -> None:
            if path.startswith(CHECKPOINT_FOLDER) and path != POINTER and not path.rpartition(".")[2].isdigit():
                await table(unstaged.backend).clean()  # the parts are there, the manifest is not
            await super().put(path, data)

    await table(Cleaned(unstaged.backend)).checkpoint()
    assert newest(unstaged).paths <= set(unstaged.objects)


async def test_a_clean_keeps_everything_while_the_newest_checkpoint_cannot_be_read(unstaged):
    await write(unstaged.backend)
    name = decode_pointer(unstaged.objects[POINTER])[0]
    await unstaged.backend.put(f"{CHECKPOINT_FOLDER}/{name}", b"torn")
    before = checkpoints(unstaged)
    await table(unstaged.backend).clean()
    assert checkpoints(unstaged) == before


async def _write(backend: Backend, _: MarkerSettings) -> None:
    await write(backend, "overwrite", {1: 1, 4: 2}, partition_overwrite="dynamic", markers=BATCHED)


@pytest.mark.no_cover
@pytest.mark.parametrize("has_staging", FAMILIES, ids=["staging", "no_staging"])
def test_wherever_a_writer_that_leaves_a_checkpoint_dies_the_next_one_leaves_what_was_committed(has_staging):
    start = Store(has_staging=has_staging)
    anyio.run(some_history, start, backend="trio")
    for store, where in each_death(start, _write, "batched", last=26):
        store.clock.pass_lease()
        with told_where(where):
            anyio.run(_write, store.backend, BATCHED, backend="trio")
            store.check_at_rest()
            snapshot = anyio.run(table(store.backend).snapshot, backend="trio")
            assert {file.path for file in snapshot.files} == store.committed_files
