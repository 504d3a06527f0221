"""A view that a caller holds on to, over a real log."""

import pytest

from tallymark.backends.measured import MeasuredBackend
from tallymark.backends.meter import RequestMeter
from tallymark.engine.errors import InvalidRequest, UnsupportedTable
from tallymark.engine.settings import ViewSettings
from tallymark.engine.table import open_table
from tests.engine.jobs.filling import appended
from tests.engine.jobs.scene import Store, table
from tests.support.loops import on_both_loops


def asked_for(meter: RequestMeter, request_class: str) -> int:
    return sum(each.count for each in meter.statistics().classes if each.request_class == request_class)


@on_both_loops
async def test_a_view_follows_the_log_by_reading_its_new_entries_only_and_knows_none_before(unstaged):
    await appended(unstaged.backend, {1: [1], 2: [2]})
    storage = MeasuredBackend(unstaged.backend, meter := RequestMeter())
    async with table(storage).view() as view:
        before = await view.sync()
        (first,) = await before.files("month=1")
        read, listed = asked_for(meter, "get"), asked_for(meter, "list")
        await appended(unstaged.backend, {1: [3]})
        with pytest.raises(InvalidRequest, match="position 2"):
            view.at(2)
        now = await view.sync()
        assert asked_for(meter, "get") - read <= 4  # the entry, and that there is no other
        assert asked_for(meter, "list") == listed
        (second,) = await now.files("month=1")
        assert await before.files("month=1") == (first,)
        assert await now.added_since(before.position) == (second,)
        assert await now.removed_since(before.position) == (first,)
        assert view.statistics().entries == 2


@on_both_loops
async def test_a_view_without_increments_is_built_anew_and_answers_alike(unstaged):
    await appended(unstaged.backend, {1: [1], 2: [2]})
    whole = open_table(unstaged.backend.url, backend=unstaged.backend, views=ViewSettings(incremental=False))
    async with whole.view() as view, table(unstaged.backend).view() as incremental:
        await appended(unstaged.backend, {1: [3]})
        anew, followed = await view.sync(), await incremental.sync()
        assert [file async for file in anew.all_files()] == [file async for file in followed.all_files()]
        assert view.statistics().entries == 2, "all of them, once more"


@on_both_loops
async def test_where_there_is_no_table_there_is_no_view():
    with pytest.raises(UnsupportedTable):
        async with table(Store(has_staging=False).backend).view():
            pass


@on_both_loops
@pytest.mark.parametrize("store", ["spillable", "key-value"])
async def test_a_view_and_a_job_have_their_local_files_where_the_settings_say_and_leave_none(store, tmp_path):
    scene = Store(has_staging=False)
    views = ViewSettings(store=store, folder=str(tmp_path), memory_bytes=1)
    whole = table(scene.backend, views=views)
    await appended(whole, {1: [1], 2: [2]})
    await appended(whole, {1: [3]})
    async with whole.view() as view, table(scene.backend).view() as in_memory:
        assert list(tmp_path.iterdir())
        assert [file async for file in (await view.sync()).all_files()] == [
            file async for file in (await in_memory.sync()).all_files()
        ]
    assert not list(tmp_path.iterdir())


@on_both_loops
async def test_a_preloaded_view_has_read_every_partition_when_its_block_begins():
    scene = Store(has_staging=False)
    await appended(scene.backend, {1: [1], 2: [2]})
    await table(scene.backend).checkpoint()
    for preload, loaded in ((False, 0), (True, 2)):
        async with table(scene.backend, views=ViewSettings(preload=preload)).view() as view:
            assert view.statistics().loaded == loaded
