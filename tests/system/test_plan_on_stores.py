"""Plans, sizes and fates of files on each real store, compared with its own listing."""

from typing import Any

import pyarrow as pa
import pytest
import trio

from tallymark.backends import Backend
from tallymark.engine.jobs.result import WriteResult
from tallymark.engine.planning.input_rows import CountedRows
from tallymark.engine.planning.write_plan import WritePlan
from tallymark.engine.table import Table, open_table
from tests.cli.scene import run_json
from tests.engine.jobs.scene import begin, flights, write_in_thread
from tests.support.place import Place, place_on
from tests.table_invariants import committed_files


@pytest.mark.parametrize(
    "store", ["s3", *(pytest.param(store, marks=pytest.mark.release) for store in ("gcs", "hdfs"))]
)
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
