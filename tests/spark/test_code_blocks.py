"""Every Python block of the README and the guides runs, on a new table each, in the order of its page."""

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, SimpleNamespace
from typing import Any

import anyio
import anyio.to_thread
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import tallymark

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
TABLE_URL = re.compile(r'"(?:s3a?://(?:lake|bucket)|/data)/flights"')

NOT_RUN = {
    "SparkSession.builder.remote": "tests/connect runs writes over Spark Connect",
    "push_to_gateway": "pushes to a server of the reader's; tests/engine/metrics tests what is pushed",
    "start_http_server": "opens a port; tests/engine/metrics tests what is served",
    "catalog_table=": "needs a metastore; tests/hive runs it",
    "sync_catalog": "needs a metastore; tests/hive runs it",
    "from my_store import": "tests/backends/test_testing.py runs it",
    "StorageOptions(profile": "needs a profile of the reader's; tests/spark/test_storage_options.py tests options",
    'as_of="2026': "names an instant of the reader's; tests/spark/test_as_of.py runs it",
    "open_view(job.ticket)": "is a task's part of a job; tests/engine/lookups runs it",
    "backend.statistics()": "counts requests of an object store; tests/system/test_request_counts.py runs it",
    "await job.look_up(": "is an engine's part of a job; tests/engine/upsert runs it",
    "stream.append(": "is a service's part, which has no Spark; tests/engine/streams and tests/examples run it",
    "tallymark.hudi.markers": "needs Hudi's bundle for Spark; tests/spark/test_driver.py runs the block around it",
    "daft.read_parquet": "tests/spark/test_reader_table.py runs these readers",
}


def blocks() -> Iterator[Any]:
    for page in PAGES:
        text = page.read_text()
        for found in BLOCK.finditer(text):
            line = text[: found.start()].count("\n") + 1
            skip = next((why for mark, why in NOT_RUN.items() if mark in found[1]), None)
            marks = () if skip is None else (pytest.mark.skip(reason=skip),)
            yield pytest.param(page, line, found[1], id=f"{page.name}:{line}", marks=marks)


def rows(spark: SparkSession) -> DataFrame:
    return spark.range(0, 60, 1, 2).selectExpr(
        "id AS flight", "2013 AS year", "CAST(id % 12 + 1 AS INT) AS month", "CAST(id % 5 AS INT) AS day"
    )


def names_for(spark: SparkSession, url: str, source: str) -> dict[str, Any]:
    """The names that the pages take for granted."""
    df = rows(spark)
    if '{"year"' in source:
        df = df.select("flight", "year", "month").where("month <= 2")
    if '{"day"' in source:
        df = df.where("day = 3")
    if "partition_by=" not in source:
        columns = ("year", "month", "day")
        first = next((name for name in columns if f'{{"{name}"' in source or f'"{name}=' in source), "day")
        partition_by = ["year", "month"] if first == "year" else [first]
        tallymark.write(df, url, mode="append", partition_by=partition_by, readers="table")
    schema = pa.schema([("flight", pa.int64()), ("year", pa.int32()), ("month", pa.int32()), ("day", pa.int32())])
    table = tallymark.open_table(url)

    async def run_everywhere(ticket: tallymark.WriteTicket) -> list[tallymark.TaskReport]:
        batch = pa.RecordBatch.from_pylist([{"flight": 1, "year": 2013, "month": 7, "day": 1}], schema=schema)
        return [await anyio.to_thread.run_sync(lambda: tallymark.write_task(ticket, [batch], task=0))]

    return {
        "spark": spark,
        "tallymark": tallymark,
        "df": df,
        "flights": df,
        "corrected": df.where("month = 2"),
        "july": df.where("month = 7"),
        "batch": df,
        "batch_id": 1,
        "url": url,
        "path": url,
        "target": f"{url}-copy",
        "table": table,
        "schema": schema,
        "position": 0,
        "day": 3,
        "run_everywhere": run_everywhere,
        "asyncio": SimpleNamespace(run=lambda awaitable: _in_thread(awaitable)),
        "AirflowFailException": RuntimeError,
    }


def _in_thread(awaitable: Any) -> Any:
    """A block that calls ``asyncio.run`` runs here beside an event loop."""
    with anyio.from_thread.start_blocking_portal("asyncio") as portal:

        async def wait() -> Any:
            return await awaitable

        return portal.call(wait)


async def run(code: CodeType, names: dict[str, Any]) -> None:
    result = eval(code, names)
    if inspect.isawaitable(result):
        await result


@pytest.mark.spark
@pytest.mark.parametrize(("page", "line", "source"), list(blocks()))
def test_a_block_runs(spark: SparkSession, tmp_path: Path, page: Path, line: int, source: str) -> None:
    url = str(tmp_path / "flights")
    names = names_for(spark, url, source)
    program = "\n" * line + TABLE_URL.sub(repr(url), source).replace("as_of=7", "as_of=1")
    code = compile(program, str(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if code.co_flags & inspect.CO_COROUTINE:
        anyio.run(run, code, names, backend="asyncio")  # as in a notebook
    else:
        exec(code, names)
