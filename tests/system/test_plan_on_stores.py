"""Plans, sizes and fates of files on each real store, beside what its administrator sees."""

from typing import Any

import pyarrow as pa
import pytest
import trio

from tallymark.backends import Backend
from tallymark.backends.meter import PriceList
from tallymark.engine.jobs.result import WriteResult
from tallymark.engine.planning.input_rows import CountedRows
from tallymark.engine.planning.write_plan import WritePlan
from tallymark.engine.table import Table, open_table
from tests.cli.scene import run_json
from tests.engine.jobs.filling import SIZING, appended, profile_of
from tests.engine.jobs.scene import begin, flights, mark, name_of, parquet, publish, write_in_thread
from tests.support.place import Place, place_on
from tests.system.wire import ONE_FLUSH, SELDOM
from tests.table_invariants import committed_files

stores = pytest.mark.parametrize("store", ["s3", "gcs", "hdfs"])
PRICES = PriceList(currency="USD", put=5.0, list=5.0, get=0.4, delete=0.0, sent_gb=0.0)


@stores
def test_a_write_does_what_its_plan_foretold_and_explain_says_so_of_each_file(store, request):
    trio.run(_foretold, place_on(store, request))


async def _foretold(place: Place) -> None:
    backend = place.backend()
    table = open_table(place.url, backend=backend)
    await _write(table, backend, {1: 3, 2: 2})
    first = committed_files(place.objects())

    words = {"mode": "overwrite", "partition_overwrite": "dynamic"}
    plan = await _planned(place, table, {2: 5, 3: 1}, **words)
    result = await _write(table, backend, {2: 5, 3: 1}, **words)
    now = committed_files(place.objects())
    assert {file.path for file in plan.removed} == first - now
    assert (plan.files, plan.rows) == (result.files, result.rows)
    assert [(each.partition, each.change) for each in plan.partitions] == [("month=2", "replaced"), ("month=3", "new")]

    sizes = await table.files()
    assert (sizes.files, sizes.bytes) == (len(now), sum(len(place.objects()[path]) for path in now))
    assert (await table.files("month=2")).rows == 5
    live, gone = [await table.explain(f"{place.native_url}/{path}") for path in (min(now), *(first - now))]
    assert (live.fate, live.is_there) == ("live", True)
    assert (gone.fate, gone.is_there, gone.position) == ("replaced", False, 2)


@stores
def test_a_write_fills_what_its_plan_said_at_the_cost_that_it_said(store, request):
    trio.run(_filled, place_on(store, request))


async def _filled(place: Place) -> None:
    backend = place.backend()
    table = open_table(place.url, backend=backend, lease=SELDOM)
    await appended(table, {1: [1, 2], 2: [3]})
    small = committed_files(place.objects())
    months = {1: [4], 2: [5, 6], 3: [7]}
    before = place.objects()
    plan = await table.plan(mode="append", sizing=SIZING, incoming=profile_of(months))
    assert place.objects() == before
    result = await appended(table, months, markers=ONE_FLUSH)
    assert plan.sizing is not None
    assert {file.path for file in plan.sizing.fills} == small == small - committed_files(place.objects())
    assert (plan.files, len(plan.sizing.fills)) == (result.files, result.removed_files)
    assert plan.rewritten_bytes == sum(len(before[path]) for path in small)


@stores
def test_a_file_of_an_open_job_is_uncommitted_until_its_rollback(store, request):
    trio.run(_explained, place_on(store, request))


async def _explained(place: Place) -> None:
    backend = place.backend()
    table = open_table(place.url, backend=backend)
    await _write(table, backend, {1: 3})
    async with begin(table) as job:
        path, announced = f"month=1/{name_of(job)}", f"month=2/{name_of(job, task=1)}"
        await mark(job, backend, [path, announced])
        publish(job.ticket, backend, path, flights({1: 3}))
        before = place.objects()
        open_file, marked = await table.explain(path), await table.explain(announced)
        assert place.objects() == before
        assert (open_file.fate, open_file.is_there, open_file.instant) == ("uncommitted", True, job.instant)
        assert (marked.fate, marked.is_there) == ("marked", False)
    left = await table.explain(path)
    assert (left.fate, left.is_there) == ("rolled back", False)
    stranger = "month=1/part-0000.parquet"
    await backend.put(stranger, parquet(flights({1: 1})))
    unknown = await table.explain(stranger)
    assert (unknown.fate, unknown.is_there) == ("unknown", True)


def test_the_commands_tell_the_same_of_s3(request):
    place = place_on("s3", request)
    trio.run(_first_write, place)
    how = [f"--storage={key}={getattr(place.options, key)}" for key in ("endpoint", "region", "path_style")]
    (path,) = committed_files(place.objects())
    assert run_json("plan", place.url, *how, "--mode=overwrite")["removed"] == [path]
    assert run_json("files", place.url, *how)["files"] == 1
    assert run_json("explain", place.url, path, *how)["fate"] == "live"


async def _first_write(place: Place) -> None:
    backend = place.backend()
    await _write(open_table(place.url, backend=backend), backend, {1: 3})


async def _planned(place: Place, table: Table, months: dict[int, int], **words: Any) -> WritePlan:
    """Storage is left as it was."""
    keys = pa.RecordBatch.from_arrays([pa.array(list(months), pa.int32())], ["month"])
    before = place.objects()
    plan = await table.plan(incoming=CountedRows(keys, list(months.values())), **words)
    assert place.objects() == before
    return plan


async def _write(table: Table, backend: Backend, months: dict[int, int], **how: Any) -> WriteResult:
    async with begin(table, **how) as job:
        result: WriteResult = await job.commit([await write_in_thread(job, backend, flights(months))])
    return result
