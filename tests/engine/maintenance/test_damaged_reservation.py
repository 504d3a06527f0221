"""Reservations that are damaged or deleted: the dead writer's files are rolled back, and no operation is stopped."""

from collections.abc import Callable

import pytest

from tallymark.engine.timeline.reservation import OPEN_FOLDER
from tests.engine.jobs.scene import Store, abandon, begin, committed, table, write_rows
from tests.engine.maintenance.test_damage import DAMAGES

HALVED, DELETED = DAMAGES["halved"], DAMAGES["deleted"]


def anothers(data: bytes) -> bytes:
    return data.replace(b"20", b"21")


async def damage(store: Store, path: str, change: Callable[[bytes], bytes | None]) -> None:
    damaged = change(store.objects[path])
    assert damaged != store.objects[path]
    await store.backend.delete([path])
    if damaged is not None:
        await store.backend.put(path, damaged)


@pytest.mark.no_cover
@pytest.mark.parametrize("kind", ["batched", "direct"])
@pytest.mark.parametrize("how", [*DAMAGES.values(), anothers], ids=[*DAMAGES, "another's"])
async def test_the_files_of_a_dead_writer_whose_reservation_is_damaged_are_rolled_back(store, how, kind):
    await committed(store.backend)
    kept = store.data_files
    left = await abandon(store, kind)
    await damage(store, f"{OPEN_FOLDER}/{left}", how)
    assert [found.instant for found in await table(store.backend).open_instants()] == [left][: how is not DELETED]
    await table(store.backend).status()
    store.clock.pass_lease()
    await committed(store.backend)
    assert store.data_files - store.fences > kept
    assert not [path for path in store.data_files - store.fences if path.endswith(f"_{left}.parquet")]
    store.check_at_rest()


async def test_the_lease_of_an_unknown_writer_decides(store):
    left = await abandon(store)
    await damage(store, f"{OPEN_FOLDER}/{left}", HALVED)
    (found,) = await table(store.backend).open_instants()
    assert (found.instant, found.operation, found.writer.host) == (left, "unknown", "unknown")
    await table(store.backend).rollback()
    assert left not in store.decisions, "its lease lasts"
    store.clock.pass_lease()
    await table(store.backend).rollback()
    assert store.decisions[left]["kind"] == "rollback"
    store.check_at_rest()


async def test_a_living_writer_commits_though_its_reservation_was_damaged(store):
    async with begin(store.backend) as job:
        report = await write_rows(job, store.backend)
        await damage(store, f"{OPEN_FOLDER}/{job.instant}", HALVED)
        await committed(store.backend, months={3: 1})
        await job.commit([report])
    store.check_at_rest()
