"""The newest entries of the log are lost: that is noticed by what shows them, and accepted on purpose alone."""

import pytest

from tallymark.engine.errors import LostEntries
from tallymark.engine.maintenance.accept_loss import AcceptedLoss
from tallymark.engine.settings import ViewSettings
from tests.engine.jobs.scene import Store, begin, committed, table, write_rows

LOG = ".hoodie/.tallymark/log/"


async def lose_from(store: Store, first: int) -> None:
    """Delete the entries from this position on, as an incomplete copy of the table lacks them."""
    await store.backend.delete([path for path in store.stored if path.startswith(LOG) and int(path[-20:]) >= first])
    store.backend.archived.clear()


async def refused(store: Store) -> str:
    """Check that no reader and no writer takes the rest for the table, and that both change nothing."""
    before = store.stored
    remedies = r"restore .* from a copy, or accept the loss .*: tallymark accept-loss"
    with pytest.raises(LostEntries, match=remedies) as error:
        await table(store.backend).snapshot()
    with pytest.raises(LostEntries):
        await committed(store.backend)
    assert store.stored == before
    return str(error.value)


async def accept(store: Store) -> AcceptedLoss:
    accepted = await table(store.backend).accept_loss()
    store.backend.archived.clear()
    return accepted


@pytest.mark.parametrize("lost", [1, 2, 3])
async def test_a_commit_that_the_hudi_timeline_shows_is_missed_and_its_files_go_with_it(store, lost):
    for _ in range(3):
        await committed(store.backend)
    gone = [entry["instant"] for entry in store.commits][lost - 1 :]
    await lose_from(store, lost)
    assert f"ends at position {lost - 1}" in await refused(store)
    accepted = await accept(store)
    assert (accepted.position, list(accepted.instants)) == (lost - 1, gone)
    assert len(accepted.files) == 2 * len(gone)
    assert accepted.missing == ()
    await committed(store.backend)
    store.check_at_rest()
    again = await table(store.backend).accept_loss()
    assert (again.position, again.instants) == (lost, ())


@pytest.mark.parametrize("lost", [2, 4])
async def test_a_checkpoint_of_a_lost_position_shows_the_loss(store, lost):
    for _ in range(4):
        async with begin(table(store.backend, views=ViewSettings(checkpoint_entries=1))) as job:
            await job.commit([await write_rows(job, store.backend)])
    await lose_from(store, lost)
    assert "checkpoint/latest shows a later commit" in await refused(store)
    accepted = await accept(store)
    assert (accepted.position, len(accepted.instants)) == (lost - 1, 5 - lost)
    await committed(store.backend)
    await table(store.backend).clean()
    store.check_at_rest()
    assert {file.path for file in (await table(store.backend).snapshot()).files} == store.committed_files


async def test_a_live_file_that_a_lost_overwrite_had_replaced_is_reported(store):
    await committed(store.backend)
    async with begin(store.backend, "overwrite", partition_overwrite="dynamic") as job:
        await job.commit([await write_rows(job, store.backend, {1: 1})])
    await lose_from(store, 2)
    accepted = await table(store.backend).accept_loss()
    assert [path.partition("/")[0] for path in accepted.missing] == ["month=1"]
    assert set(accepted.missing) <= store.committed_files


async def test_a_projected_commit_of_another_table_is_not_evidence(store):
    """A process that outlived its table has put it; the log of the table that was created again is whole."""
    await committed(store.backend)
    stale = {path: data for path, data in store.stored.items() if path.startswith(".hoodie/2")}
    store.backend._objects.clear()
    await committed(store.backend)
    for path, data in stale.items():
        await store.backend.put(path, data)
    await committed(store.backend)
    assert (await table(store.backend).snapshot()).position == 2
