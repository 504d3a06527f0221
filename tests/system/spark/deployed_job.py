"""What ``spark-submit`` runs: ``deployed_job.py <table>``. Writes twice, by batched and by direct markers.

Prints, as JSON, the results and where tasks have found Python and the package.
"""

import json
import sys
from collections.abc import Iterable, Iterator

from pyspark.sql import SparkSession

import tallymark


def found(_: Iterable[int]) -> Iterator[tuple[str, str]]:
    import tallymark

    yield sys.executable, tallymark.__file__


def run(table: str) -> None:
    spark = SparkSession.builder.getOrCreate()
    rows = spark.range(0, 100, 1, 2).selectExpr("id", "id % 2 AS part")
    results = [
        tallymark.write(rows, table, mode="append", partition_by=["part"], markers=markers)
        for markers in (None, "direct")
    ]
    told = {
        "modes": [result.marker_mode for result in results],
        "rows": tallymark.read(spark, table).count(),
        "found": spark.sparkContext.parallelize(range(2), 2).mapPartitions(found).distinct().collect(),
    }
    print(json.dumps(told))
    spark.stop()


if __name__ == "__main__":
    run(sys.argv[1])
