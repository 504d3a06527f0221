"""Hudi's own reader, on the JVM, reads archived tables, and what upserts and deletes leave, as the log has them."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pyspark
import pytest

from tallymark.backends.local import LocalBackend
from tallymark.bench.peers.timeline_server import HUDI_JARS
from tests.engine.jobs.scene import begin, write_rows
from tests.engine.maintenance.test_archived_readers import by_month, opened, write
from tests.engine.upsert.scene import PEOPLE
from tests.engine.upsert.test_model import Scene, Write, play
from tests.support.jars import jars

pytestmark = [
    pytest.mark.spark,
    pytest.mark.every_spark,
    pytest.mark.skipif(not pyspark.__version__.startswith("3.5."), reason=f"{HUDI_JARS[0]} is for Spark 3.5"),
]

READ = """
import json, sys
from pyspark.sql import SparkSession
settings = {
    "spark.jars": sys.argv[1],
    "spark.ui.enabled": "false",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
}
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
rows = spark.read.format("hudi").load(sys.argv[2]).select(*sys.argv[3:]).collect()
print("ROWS", json.dumps([row.asDict() for row in rows]))
"""


def rows_on_the_jvm(path: Path, *columns: str) -> list[dict[str, Any]]:
    paths = ",".join(map(str, jars(HUDI_JARS)))
    command = [sys.executable, "-c", READ, paths, str(path), *columns]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [line for line in done.stdout.splitlines() if "ROWS" in line]
    assert found, done.stderr[-4000:]
    rows: list[dict[str, Any]] = json.loads(found[0].partition("ROWS")[2])
    return rows


@pytest.mark.parametrize("readers", ["directory", "table"])
def test_hudi_on_the_jvm_reads_an_archived_table(tmp_path, readers):
    anyio.run(_check, tmp_path / "flights", readers, backend="trio")


async def _check(path: Path, readers: str) -> None:
    await write(path, {1: 3, 2: 2}, readers=readers)
    for round_ in range(1, 6):
        await write(path, {1: 1})
        await write(path, {3: round_}, mode="overwrite", partition_overwrite="dynamic")
    assert not (path / ".hoodie/19700101000000000.commit").exists(), "archived"
    async with begin(opened(path)) as job:
        report = await write_rows(job, LocalBackend(path), {1: 1, 4: 4})
        for _ in range(4):
            await write(path, {2: 1})
        assert by_month(rows_on_the_jvm(path, "flight", "month")) == {1: 8, 2: 6, 3: 5}
        await job.commit([report])
    assert by_month(rows_on_the_jvm(path, "flight", "month")) == {1: 9, 2: 6, 3: 5, 4: 4}


CHANGES = (
    Write(mode="append", rows=((5, "A", 1, 0), (6, "A", 1, 0)), is_sized=True),
    Write(mode="upsert", rows=((1, "B", 3, 0), (0, "A", 3, 1), (7, "B", 2, 0)), flags=(False, True, False)),
    Write(mode="overwrite", rows=((4, "A", 2, 1), (2, "A", 2, 1)), land="A"),
    Write(mode="delete", rows=((2, "A", 0, 0), (3, "B", 0, 0))),
    Write(mode="upsert", rows=((4, "B", 4, 0), (1, "B", 4, 1), (0, "A", 1, 0))),
)


@pytest.mark.parametrize("readers", ["directory", "table"])
@pytest.mark.parametrize("unique_in", ["partition", "table"])
def test_hudi_on_the_jvm_reads_what_upserts_and_deletes_leave(tmp_path, unique_in, readers):
    scene = Scene(unique_in, readers, tmp_path / "people")
    anyio.run(play, scene, CHANGES)
    found = rows_on_the_jvm(tmp_path / "people", *PEOPLE.names)
    assert scene.model.rows
    assert sorted(map(str, found)) == sorted(map(str, scene.model.rows))
