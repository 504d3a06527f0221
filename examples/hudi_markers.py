"""Hudi on Tallymark's markers: Hudi's own writer goes on though the service that takes its markers is killed.

``pip install 'tallymark[serve]' 'pyspark==3.5.*'``. Spark fetches Hudi's bundle, unless PYSPARK_SUBMIT_ARGS is set.
"""

import json
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from subprocess import PIPE, Popen
from urllib.parse import urlencode
from urllib.request import urlopen

from pyspark.sql import SparkSession

import tallymark

BUNDLE = "org.apache.hudi:hudi-spark3.5-bundle_2.12:1.2.0"
TABLE = {
    "hoodie.table.name": "flights",
    "hoodie.datasource.write.operation": "bulk_insert",
    "hoodie.datasource.write.recordkey.field": "flight",
    "hoodie.datasource.write.partitionpath.field": "month",
}


def serve(lake: Path, port: int = 0) -> tuple["Popen[str]", int]:
    """Start ``tallymark serve``. Return it, and its port for Hudi, once it listens."""
    command = [sys.executable, "-c", "from tallymark.cli import main; main()", "serve", "--root", str(lake)]
    command += ["--hudi-port", str(port), "--port", "0", "--task-port", "0", "--no-page", "--secret", f"{lake}.secret"]
    service = Popen(command, stdout=PIPE, text=True)
    _, hudi, _ = (service.stdout.readline() for _ in range(3))  # type: ignore[union-attr]
    return service, int(hudi.rpartition(":")[2])  # "Markers for Hudi at 127.0.0.1:26754"


def markers(port: int, table: Path) -> set[str]:
    """Request the markers of the write that is in flight, as Hudi does."""
    names = set[str]()
    for folder in table.glob(".hoodie/.temp/2*"):
        query = urlencode({"markerdirpath": folder})
        with urlopen(f"http://127.0.0.1:{port}/v1/hoodie/marker/all?{query}") as response:
            names |= {*json.load(response)}
    return names


def main(folder: str) -> None:
    table = Path(folder, "lake/flights")
    service, port = serve(table.parent)
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", f"--packages {BUNDLE} pyspark-shell")
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.serializer", "org.apache.spark.serializer.KryoSerializer").getOrCreate()
    spark.sparkContext.setLogLevel("OFF")  # Hudi logs each attempt to reach the service
    flights = spark.range(12_000, numPartitions=10).selectExpr("id AS flight", "concat('month ', id % 12 + 1) AS month")
    writer = flights.write.format("hudi").options(**tallymark.hudi.options("127.0.0.1", port), **TABLE).mode("append")
    with ThreadPoolExecutor() as threads:
        job = threads.submit(writer.save, str(table))
        while not (acked := markers(port, table)) and not job.done():
            wait([job], timeout=0.05)
        service.kill()
        service.wait()
        print(f"{len(acked)} markers were acked, such as {min(acked)}; then the service was killed")
        service, _ = serve(table.parent, port)
        print(f"it has started again, and returns {len(acked & markers(port, table))} of them")
        job.result()
    found = spark.read.format("hudi").load(str(table))
    print(f"the job has written {found.count()} rows, {found.select('flight').distinct().count()} of them different")
    print(f"{len(markers(port, table))} markers are left in {table}")
    service.kill()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="tallymark-"))
