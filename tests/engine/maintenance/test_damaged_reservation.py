"""Reservations that are damaged or deleted: the dead writer's files are rolled back, and no operation is stopped."""

import pytest

from tallymark.engine.timeline.reservation import OPEN_FOLDER
from tests.engine.jobs.scene import Store, abandon, begin, committed, table, write_rows

DAMAGES = ("deleted", "empty", "half", "one byte short", "another's", "random")


async def damage(store: Store, path: str, how: str) -> None:
    data = store.objects[path]
    if how == "deleted":
        await store.backend.delete([path])
        return
    damaged = {
        "empty": b"",
        "half": data[: len(data) // 2],
        "one byte short": data[:-1],
        "another's": data.replace(b"20", b"21"),
        "random": b"\x93\x01\x02\x03" * 9,
    }
    assert damaged[how] != data
    await store.backend.put(path, damaged[how])


@pytest.mark.parametrize("kind", ["batched", "direct"])
@pytest.mark.parametrize("how", DAMAGES)
async def test_the_files_of_a_dead_writer_whose_reservation_is_damaged_are_rolled_back(store, how, kind):
    await committed(store.backend)
    kept = store.data_files
    left = await abandon(store, kind)
    await damage(store, f"{OPEN_FOLDER}/{left}", how)
    assert [found.instant for found in await table(store.backend).open_instants()] == [left][: how != "deleted"]
    await table(store.backend).status()
    store.clock.pass_lease()
    await committed(store.backend)
    assert store.data_files - store.fences > kept
    assert not [path for path in store.data_files - store.fences if path.endswith(f"_{left}.parquet")]
    store.check_at_rest()


async def test_the_lease_of_an_unknown_writer_decides(store):
    left = await abandon(store)
    await damage(store, f"{OPEN_FOLDER}/{left}", "half")
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
        await damage(store, f"{OPEN_FOLDER}/{job.instant}", "half")
        await committed(store.backend, months={3: 1})
        await job.commit([report])
    store.check_at_rest()
