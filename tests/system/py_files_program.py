"""Write and read a table with executors that have Tallymark from a zip: ``python -m ... <zip> <table>``.

Prints where a task found the package.
"""

import sys

import tallymark
from tests.support.spark import LOCAL, start_session


def run(package: str, table: str) -> None:
    spark = start_session(LOCAL, **{"spark.submit.pyFiles": package})
    rows = spark.range(100).selectExpr("id", "id % 2 AS part")
    result = tallymark.write(rows, table, mode="append", partition_by=["part"])
    assert result.rows == tallymark.read(spark, table).count() == 100
    print(*spark.sparkContext.range(1).map(lambda _: tallymark.__file__).collect())


if __name__ == "__main__":
    run(*sys.argv[1:])
