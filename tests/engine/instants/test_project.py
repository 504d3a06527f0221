"""The Hudi timeline keeps up with the log, in the log's order, whoever does it and how often."""

import anyio
import pytest

from tallymark.engine.instants.project import project
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.jobs.prepare import read_properties
from tallymark.engine.settings import CommitSettings, LeaseSettings
from tests.engine.jobs.scene import Store, begin, committed, table
from tests.support.dying import DyingBackend, ProcessDied
from tests.support.faulty import FaultyBackend, refused, slow
from tests.support.loops import on_both_loops
from tests.table_invariants import projection_is_a_prefix_of_the_log


async def unprojected(count: int = 3) -> Store:
    """A table whose log has commits that are not projected, with a rollback among them."""
    store = Store(has_staging=False)
    for number in range(count):
        await committed(store.backend, "append", {number: 1, 1: 1})
    await committed(store.backend, "overwrite", {1: 1}, partition_overwrite="dynamic")
    async with begin(store.backend):
        pass
    for path in list(store.objects):
        if path.startswith((".hoodie/2", ".hoodie/.tallymark/checkpoint/")) or ".hoodie_partition" in path:
            await store.backend.delete([path])
    store.backend.archived.clear()  # these were lost, not archived
    return store


async def project_all(backend) -> None:
    mine = TableHandle(backend, CommitSettings(), LeaseSettings())
    properties = await read_properties(backend)
    assert properties is not None
    history = await mine.log.refresh()
    await project(mine, properties, history.head)


@on_both_loops
async def test_everything_that_lacks_its_projection_gets_it():
    store = await unprojected()
    await project_all(store.backend)
    store.check_projection()
    store.check_at_rest()


@pytest.mark.no_cover
async def test_wherever_it_is_interrupted_readers_see_a_prefix_of_the_log_and_another_goes_on():
    counting = DyingBackend((await unprojected()).backend)
    await project_all(counting)
    for at in range(1, counting.count + 1):
        store = await unprojected()
        with pytest.raises((ProcessDied, BaseExceptionGroup)):
            await project_all(DyingBackend(store.backend, at=at))
        projection_is_a_prefix_of_the_log(store.objects)
        await project_all(store.backend)
        store.check_projection()


async def test_no_commit_is_completed_before_an_older_one():
    store = await unprojected(4)
    first = store.log_entries[0]["instant"]
    delayed = FaultyBackend(store.backend, slow("put_new", 30.0, f"*/{first}.commit"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(project_all, delayed)
        await anyio.sleep(15.0)
        projection_is_a_prefix_of_the_log(store.objects)
    store.check_projection()


async def test_any_number_may_do_it_at_once():
    store = await unprojected(6)
    async with anyio.create_task_group() as tasks:
        for pause_s in range(4):
            tasks.start_soon(project_all, FaultyBackend(store.backend, slow("put_new", pause_s)))
    store.check_projection()


async def test_while_the_replacement_cannot_be_shown_the_replaced_files_stay(unstaged):
    """Else readers of the Hudi format would find a hole."""
    await committed(unstaged.backend)
    old = unstaged.data_files
    storage = FaultyBackend(unstaged.backend, refused("put_new", "*.replacecommit"))
    result = await committed(storage, "overwrite")
    assert result.pending is not None
    assert old <= unstaged.data_files
    unstaged.clock.pass_lease()
    await table(unstaged.backend).clean()
    assert not old & unstaged.data_files
    unstaged.check_at_rest()


async def test_what_a_handle_has_projected_it_does_not_ask_for_again(unstaged):
    for _ in range(5):
        await committed(unstaged.backend)
    target = table(unstaged.faulty)
    for asked in (1, 0):
        unstaged.faulty.calls.clear()
        await committed(target)
        found = [path for path in unstaged.faulty.paths("get") if path.endswith(".commit")]
        assert len(found) == asked, "the newest one, which tells of all older ones, and nothing when it is known"


@pytest.mark.parametrize("lost", ["commit.requested", "inflight"])
async def test_a_writer_that_dies_between_the_files_of_its_own_commit_is_completed_by_the_next(unstaged, lost):
    """It puts them at once, and the one that shows the commit may be the first."""
    await committed(unstaged.backend, months={1: 1})
    storage = FaultyBackend(unstaged.backend, slow("put_new", 1.0, f"*.{lost}"), refused("put_new", f"*.{lost}"))
    result = await committed(storage, months={1: 1})
    assert result.pending is not None
    path = f".hoodie/{result.instant}."
    assert f"{path}commit" in unstaged.objects
    assert f"{path}{lost}" not in unstaged.objects
    await committed(unstaged.backend, months={1: 1})
    unstaged.clock.pass_lease()
    await table(unstaged.backend).clean()
    assert f"{path}{lost}" in unstaged.objects
    unstaged.check_at_rest()


async def test_a_partition_is_described_before_its_first_commit_is_shown(unstaged):
    storage = FaultyBackend(unstaged.backend, refused("put_new", "month=7/*"))
    await committed(unstaged.backend, months={1: 1})
    result = await committed(storage, months={7: 1})
    assert result.pending is not None
    assert f".hoodie/{result.instant}.commit" not in unstaged.objects
    unstaged.clock.pass_lease()
    await table(unstaged.backend).clean()
    unstaged.check_at_rest()
