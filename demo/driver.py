"""A Spark of two cores, and a driver with a separate process and Spark, which step 3 starts in order to kill it.

The driver overwrites all 365 days with the rows of a bad run: ``python -m demo.driver <source> <table> <scratch>``.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

import tallymark
from demo.flights import by_day, grounded

STDERR = 2

SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options for a JVM of a minute: its better compiler and its parallel collector would cost more than they gain."""


def start_spark(scratch: Path) -> SparkSession:
    """Start a session whose JVM and workers log to ``spark.log`` of the scratch folder."""
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["LC_ALL"] = "C.UTF-8"  # else a JVM finds no folder whose name is not ASCII
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master("local[2,4]").appName("tallymark demo")
    settings: dict[str, bool | float | int | str | None] = {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={scratch} {SHORT_LIVED}",
        "spark.driver.host": "127.0.0.1",
        "spark.local.dir": str(scratch),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    with _stderr_to(scratch / "spark.log"):
        session = builder.config(map=settings).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Make processes that are started in the block inherit the log as their stderr."""
    sys.stderr.flush()
    kept = os.dup(STDERR)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), STDERR)
        yield
    finally:
        os.dup2(kept, STDERR)
        os.close(kept)


def main(source: str, table: str, scratch: str) -> None:
    spark = start_spark(Path(scratch))
    flights = by_day(grounded(spark.read.parquet(source)), tasks=4)
    tallymark.write(flights, table, mode="overwrite", partition_overwrite="dynamic")


if __name__ == "__main__":
    main(*sys.argv[1:])
