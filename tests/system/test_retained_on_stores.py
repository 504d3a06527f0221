"""A table that keeps what it replaces, on each real store, by that store's own clock."""

from datetime import UTC, datetime

import anyio
import pytest
import trio

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.table import Table, open_table
from tests.engine.jobs.scene import begin, flights, write_in_thread
from tests.support.place import Place, place_on
from tests.table_invariants import log_entries, retained_files, table_is_at_rest

SECOND_S = 1.1
"""S3 and GCS tell whole seconds: of two commits as far apart, one is later."""


@pytest.mark.parametrize("store", ["s3", "gcs", "hdfs"])
def test_replaced_files_are_read_as_of_then_until_a_clean_lets_them_go(store, request):
    trio.run(_live, place_on(store, request))


async def _live(place: Place) -> None:
    backend = place.backend()
    table = open_table(place.url, backend=backend)
    await _write(table, backend, {1: 2, 2: 2}, mode="append", readers="table")
    await anyio.sleep(SECOND_S)
    await _write(table, backend, {1: 3}, mode="overwrite", partition_overwrite="dynamic")
    first, second = (_put(backend_time) for backend_time in await _times(backend))
    assert [await _rows(table, as_of) for as_of in (1, 2, first, second, None)] == [4, 5, 4, 5, 5]
    assert len(retained_files(place.objects())) == 1
    table_is_at_rest(place.objects())

    before = place.objects()
    plan = await table.clean(retain_hours=0, dry_run=True)
    assert place.objects() == before
    assert (await table.clean()).files == 0
    done = await table.clean(retain_hours=0)
    assert (plan.files, plan.bytes, plan.horizon) == (done.files, done.bytes, done.horizon)
    assert (done.files, done.horizon, log_entries(place.objects())[-1]["kind"]) == (1, 2, "clean")
    table_is_at_rest(place.objects())
    with pytest.raises(InvalidRequest, match="retained is everything since position 2"):
        await table.snapshot(as_of=first)
    assert await _rows(table, second) == 5


async def _write(table: Table, backend, months, **how) -> None:
    async with begin(table, **how) as job:
        await job.commit([await write_in_thread(job, backend, flights(months))])


async def _times(backend) -> list[float]:
    """When the log's entries were put, as the store tells."""
    return [entry.modified async for entry in backend.list(".hoodie/.tallymark/log")]


def _put(modified: float) -> datetime:
    return datetime.fromtimestamp(modified, UTC)


async def _rows(table: Table, as_of) -> int:
    return (await table.snapshot(as_of=as_of)).rows
