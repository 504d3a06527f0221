"""A view that a caller holds on to, over a real log."""

import pytest

from tallymark.backends.measured import MeasuredBackend
from tallymark.backends.meter import RequestMeter
from tallymark.engine.errors import InvalidRequest, UnsupportedTable
from tallymark.engine.settings import ViewSettings
from tallymark.engine.writes import open_table
from tests.engine.writes.filling import appended
from tests.engine.writes.scene import Store, table
from tests.support.loops import on_both_loops


def asked_for(meter: RequestMeter, request_class: str) -> int:
    return sum(each.count for each in meter.statistics().classes if each.request_class == request_class)


@on_both_loops
async def test_a_view_follows_the_log_by_reading_its_new_entries_only():
    store = Store(has_staging=False)
    await appended(store.backend, {1: [1], 2: [2]})
    storage = MeasuredBackend(store.backend, meter := RequestMeter())
    async with table(storage).view() as view:
        before = await view.sync()
        (first,) = await before.files("month=1")
        read, listed = asked_for(meter, "get"), asked_for(meter, "list")
        await appended(store.backend, {1: [3]})
        now = await view.sync()
        assert asked_for(meter, "get") - read <= 4  # the entry, and that there is no other
        assert asked_for(meter, "list") == listed
        (second,) = await now.files("month=1")
        assert await before.files("month=1") == (first,)
        assert await now.added_since(before.position) == (second,)
        assert await now.removed_since(before.position) == (first,)
        assert view.statistics().entries == 2


@on_both_loops
async def test_a_view_without_increments_is_built_anew_and_answers_alike():
    store = Store(has_staging=False)
    await appended(store.backend, {1: [1], 2: [2]})
    whole = open_table(store.backend.url, backend=store.backend, views=ViewSettings(incremental=False))
    async with whole.view() as view, table(store.backend).view() as incremental:
        await appended(store.backend, {1: [3]})
        anew, followed = await view.sync(), await incremental.sync()
        assert [file async for file in anew.all_files()] == [file async for file in followed.all_files()]
        assert view.statistics().entries == 2, "all of them, once more"


@on_both_loops
async def test_a_position_that_was_not_read_yet_is_refused():
    store = Store(has_staging=False)
    await appended(store.backend, {1: [1]})
    async with table(store.backend).view() as view:
        await appended(store.backend, {1: [3]})
        with pytest.raises(InvalidRequest, match="position 2"):
            view.at(2)


@on_both_loops
async def test_where_there_is_no_table_there_is_no_view():
    with pytest.raises(UnsupportedTable):
        async with table(Store(has_staging=False).backend).view():
            pass
