"""Write a table by executors whose Python lacks something: ``python -m ... <table> [key=value ...]``.

Prints the error in one line; takes settings of Spark's.
"""

import os
import sys

import tallymark
from tests.support.spark import LOCAL, start_session


def run(table: str, *conf: str) -> None:
    os.environ.pop("PYTHONPATH", None)  # what this process finds by it, executors are not to find
    spark = start_session(**{"master": LOCAL, **dict(setting.split("=", 1) for setting in conf)})
    try:
        result = tallymark.write(spark.range(100), table, mode="append")
    except tallymark.TallymarkError as error:
        print(type(error).__name__, error, sep=": ")
    else:
        print(f"{result.rows} rows")


if __name__ == "__main__":
    run(*sys.argv[1:])
