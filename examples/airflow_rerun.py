"""A daily task as a scheduler such as Airflow runs it: after a retry or a "clear" its rows are in the table once."""

import os
import sys
import tempfile

from pyspark.sql import SparkSession

import tallymark


def load_flights(url: str, logical_date: str) -> str:
    """What the operator calls, with its ``{{ ds }}``; returns what is to stand in the task's log, or in an XCom."""
    spark = SparkSession.builder.getOrCreate()
    flights = spark.range(1000).selectExpr(f"date '{logical_date}' AS day", "id AS flight")
    result = tallymark.write(flights, url, mode="append", partition_by=["day"], txn=f"load_flights:{logical_date}")
    if result.is_rerun:
        print(f"{logical_date} was loaded by instant {result.instant}; nothing was written")
    return result.to_json()


def main(url: str) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # tasks run in this Python, not in PATH's python3
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    load_flights(url, "2026-11-20")
    first = load_flights(url, "2026-11-21")
    assert load_flights(url, "2026-11-21").replace('"is_rerun": true', '"is_rerun": false') == first
    tallymark.read(spark, url).groupBy("day").count().orderBy("day").show()
    print(f"who has written what: tallymark timeline {url}")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="tallymark-"))
