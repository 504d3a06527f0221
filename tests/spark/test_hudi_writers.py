"""Whole jobs of Hudi's own writers, on the JVM, with their markers in a service that is killed meanwhile."""

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pyspark
import pytest

from tallymark.bench.peers.timeline_server import HUDI_JARS
from tests.support.jars import jars
from tests.support.ports import free_port

pytestmark = [
    pytest.mark.spark,
    pytest.mark.every_spark,
    pytest.mark.skipif(not pyspark.__version__.startswith("3.5."), reason=f"{HUDI_JARS[0]} is for Spark 3.5"),
]

GUIDE = Path(__file__).parents[2] / "docs/hudi.md"

JOB = """
import sys
from pyspark.sql import SparkSession
jar, path, version, metadata, *pairs = sys.argv[1:]
session = {
    "spark.jars": jar,
    "spark.ui.enabled": "false",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
}
spark = SparkSession.builder.master("local[2]").config(map=session).getOrCreate()
options = {
    "hoodie.table.name": "t",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "land",
    "hoodie.datasource.write.precombine.field": "at",
    "hoodie.write.table.version": version,
    "hoodie.metadata.enable": metadata,
    **dict(pair.split("=", 1) for pair in pairs),
}
for operation in ("insert", "upsert", "bulkinsert", "delete"):
    options[f"hoodie.{operation}.shuffle.parallelism"] = "4"

def write(ids, at, operation, mode="append"):
    rows = [(each, "ABCD"[each % 4] + " =%", at, each * at) for each in ids]
    frame = spark.createDataFrame(rows, "id long, land string, at long, value long")
    by = {"hoodie.datasource.write.operation": operation}
    frame.write.format("hudi").options(**options, **by).mode(mode).save(path)

def look():
    found = spark.read.format("hudi").load(path).selectExpr("count(*)", "sum(value)").collect()[0]
    print("FOUND", found[0], found[1], flush=True)

write(range(1000), 1, "insert", "overwrite")
write(range(500, 1500), 2, "upsert")
write(range(1500, 2000), 3, "bulk_insert")
write(range(100), 4, "delete")
look()
write(range(5000, 5010), 5, "insert_overwrite")
look()
"""

FOUND = [
    (1900, sum(range(100, 500)) + 2 * sum(range(500, 1500)) + 3 * sum(range(1500, 2000))),
    (10, 5 * sum(range(5000, 5010))),
]


def settings_of_the_guide(port: int) -> list[str]:
    block = re.search(r"```properties\n(.+?)```", GUIDE.read_text(), re.DOTALL)
    assert block
    return [line.replace("=26754", f"={port}") for line in block[1].splitlines()]


def start(root: Path, port: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", "from tallymark.cli import main; main()", "serve", "--port", "0"]
    command += ["--task-port", "0", "--secret", str(root.parent / "secret")]
    return subprocess.Popen([*command, "--root", str(root), "--hudi-port", str(port)], stdout=subprocess.DEVNULL)


@contextmanager
def served(root: Path, port: int, *, kills_after_s: tuple[float, float] | None) -> Iterator[list[int]]:
    """A service that is killed after a random time, again and again. Yields the exit codes."""
    ended, codes, random = threading.Event(), list[int](), Random(31)

    def run() -> None:
        while not ended.is_set():
            with start(root, port) as process:
                ended.wait(random.uniform(*kills_after_s) if kills_after_s else None)
                process.kill()
            codes.append(process.returncode)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield codes
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize("metadata", ["false", "true"])
@pytest.mark.parametrize("version", ["6", "9"])
@pytest.mark.parametrize("kills_after_s", [None, (4.0, 6.0)], ids=["lives", "killed"])
def test_hudis_jobs_are_right_and_no_marker_is_left(tmp_path, version, metadata, kills_after_s):
    port, path = free_port(), tmp_path / "table"
    paths = ",".join(map(str, jars(HUDI_JARS)))
    command = [sys.executable, "-c", JOB, paths, str(path), version, metadata, *settings_of_the_guide(port)]
    with served(tmp_path, port, kills_after_s=kills_after_s) as codes:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("FOUND")]
    assert [(int(count), int(total)) for count, total in found] == FOUND, done.stderr[-4000:]
    assert len(codes) > 2 or kills_after_s is None
    assert set(codes) == {-signal.SIGKILL}
    left = {each.relative_to(path).as_posix() for each in path.rglob("*") if ".temp" in each.parts}
    assert left <= {".hoodie/metadata/.hoodie/.temp"}, "Hudi's own, of its metadata table"
    assert not (path / ".hoodie/.tallymark").exists()


def test_without_retries_a_service_that_is_killed_fails_the_job(tmp_path):
    """A negative control: what keeps the job alive is in the settings of the guide."""
    port, path = free_port(), tmp_path / "table"
    paths = ",".join(map(str, jars(HUDI_JARS)))
    settings = [line.replace("retry.enable=true", "retry.enable=false") for line in settings_of_the_guide(port)]
    done = subprocess.run(
        [sys.executable, "-c", JOB, paths, str(path), "9", "false", *settings],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "FOUND" not in done.stdout
    assert "Connection refused" in done.stderr
