"""The examples as a newcomer runs them: each in a process of its own, with and without a target."""

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import httpx
import pyarrow.dataset as ds
import pytest

from tests.support.jars import QUICK_JAVA, java

EXAMPLES = Path(__file__).parents[2] / "examples"
SPARK = {"SPARK_LOCAL_IP": "127.0.0.1", **QUICK_JAVA}


def run(name: str, *arguments: object, **environment: str) -> str:
    """The example's output; it may warn, but neither fail nor print a traceback."""
    ended = subprocess.run(
        [sys.executable, EXAMPLES / name, *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr
    return ended.stdout


def test_marker_engine_holds_a_thousand_markers_in_a_few_objects(tmp_path):
    printed = run("marker_engine.py", tmp_path)
    assert printed.startswith("1000 markers are durable, in ")
    assert int(printed.split()[5]) < 20
    assert f"another engine finds 1000 markers in {tmp_path}" in printed
    assert list(tmp_path.rglob("MARKERS*")) == []


def test_process_pool_commits_the_rows_of_its_input(tmp_path):
    printed = run("process_pool.py", tmp_path)
    assert printed.startswith("4000 rows in 48 files, 48 markers in ")
    table = ds.dataset([str(path) for path in tmp_path.glob("month=*/*.parquet")]).to_table()
    assert (table.num_rows, set(table["day"].to_pylist())) == (4000, set(range(4000)))


def test_sized_appends_leave_few_files(tmp_path):
    printed = run("sized_appends.py", tmp_path)
    assert "hour 0: 2 files written, 0 small ones filled" in printed
    assert "hour 1: 2 files written, 2 small ones filled" in printed
    files = [str(path) for path in tmp_path.glob("station=*/*.parquet")]
    assert f"20000 rows in {len(files)} files after 20 appends" in printed
    assert len(files) <= 6
    table = ds.dataset(files).to_table()
    assert (table.num_rows, set(table["reading"].to_pylist())) == (20_000, set(range(20_000)))


def test_http_ingest_answers_when_rows_are_durable_and_takes_a_number_once(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    http_ingest = importlib.import_module("http_ingest")

    async def run() -> None:
        app = http_ingest.app_of(str(tmp_path / "events"))
        transport = httpx.ASGITransport(app=app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://here") as client,
        ):
            for _ in range(2):
                body = b'{"id": 1, "place": "Oslo"}\n{"id": 2}'
                answer = await client.post("/rows?producer=meter-7&sequence=0", content=body)
                assert (answer.status_code, answer.json()["rows"]) == (200, 2)
            for body in (b'{"id": "x"}', b'{"id": 3, "color": 1}'):
                assert (await client.post("/rows", content=body)).status_code == 400

    anyio.run(run, backend="trio")
    files = [str(path) for path in tmp_path.glob("events/*.parquet")]
    values: list[Any] = ds.dataset(files).to_table()["id"].to_pylist()
    assert sorted(values) == [1, 2]


@pytest.mark.spark
def test_pyspark_job_replaces_one_partition_and_reads_back_the_whole(tmp_path):
    java()
    printed = run("pyspark_job.py", tmp_path, **SPARK)
    assert "wrote 4000 rows in 24 files" in printed
    assert "replaced 2 files of 1 partition at position 2" in printed
    assert "|  flown|  333|" in printed
    assert "|planned| 3667|" in printed
    assert len(list(tmp_path.glob("month=*/*.parquet"))) == 24


@pytest.mark.spark
def test_foreach_batch_has_each_batch_once_though_its_query_died(tmp_path):
    java()
    printed = run("foreach_batch.py", tmp_path, **SPARK)
    assert printed.splitlines() == [
        "batch 0: wrote 100 rows",
        "batch 1: wrote 100 rows",
        "batch 1: committed before",
        "batch 2: wrote 100 rows",
        f"300 rows in {tmp_path}/clicks, 300 of them different",
    ]


@pytest.mark.spark
def test_airflow_rerun_loads_a_day_once(tmp_path):
    java()
    printed = run("airflow_rerun.py", tmp_path, **SPARK)
    assert "2026-11-21 was loaded by instant " in printed
    assert printed.count("nothing was written") == 1
    assert "|2026-11-20| 1000|" in printed
    assert "|2026-11-21| 1000|" in printed


@pytest.mark.spark
def test_change_data_capture_ends_in_the_rows_of_the_database(tmp_path):
    java()
    printed = run("change_data_capture.py", tmp_path, **SPARK)
    counts = [
        line[line.index("batch") :].partition(", superseded")[0] for line in printed.splitlines() if "batch" in line
    ]
    assert counts == [
        "batch 0: ChangeSummary(inserted=2, updated=0, deleted=0, ignored=1",
        "batch 1: ChangeSummary(inserted=1, updated=1, deleted=1, ignored=0",
        "batch 1: committed before, ChangeSummary(inserted=1, updated=1, deleted=1, ignored=0",
        "batch 2: ChangeSummary(inserted=0, updated=1, deleted=0, ignored=1",
    ]
    assert [line.split("|")[1:4] for line in printed.splitlines()[-4:-2]] == [
        ["  2", " Bob", "  5"],
        ["  3", " Cyd", "  8"],
    ]


def test_without_a_target_an_example_works_in_a_temporary_directory(tmp_path):
    assert f"in {tmp_path}/tallymark-" in run("marker_engine.py", TMPDIR=str(tmp_path))


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_an_example_is_short(example):
    assert len(example.read_text().splitlines()) < 75
