"""A driver with a process and a Spark of its own; step 3 starts it in order to kill it.

It overwrites all 365 days with the rows of a bad run: ``python -m demo.driver <source> <table> <scratch>``.
"""

import sys
from pathlib import Path

import tallymark
from demo.flights import by_day, grounded
from demo.spark import start_spark


def main(source: str, table: str, scratch: str) -> None:
    spark = start_spark(Path(scratch))
    flights = by_day(grounded(spark.read.parquet(source)), tasks=4)
    tallymark.write(flights, table, mode="overwrite", partition_overwrite="dynamic")


if __name__ == "__main__":
    main(*sys.argv[1:])
