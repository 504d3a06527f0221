"""A PySpark job: write a partitioned table, replace one of its partitions, read it back."""

import os
import sys
import tempfile

from pyspark.sql import SparkSession

import tallymark


def main(url: str) -> None:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # tasks run in this Python, not in PATH's python3
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    days = spark.range(4000).selectExpr("id % 12 + 1 AS month", "id AS day", "'planned' AS state")

    written = tallymark.write(days, url, mode="append", partition_by=["month"])
    print(f"wrote {written.rows} rows in {written.files} files; {written.marker_objects} objects held their markers")

    june = days.where("month = 6").selectExpr("month", "day", "'flown' AS state")
    replaced = tallymark.write(june, url, mode="overwrite", partition_overwrite="dynamic")
    print(f"replaced {replaced.removed_files} files of {replaced.partitions} partition at position {replaced.position}")

    tallymark.read(spark, url).groupBy("state").count().orderBy("state").show()
    print(f"look at it: tallymark timeline {url}")
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="tallymark-"))
