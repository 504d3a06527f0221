"""Write tables by executors whose Python lacks something: ``python -m ... <folder> <python> ...``.

Prints, one line for each Python, the error with which a write fails; the table is ``folder/0`` and so on.
"""

import os
import sys

import tallymark
from tests.support.spark import LOCAL, start_session


def run(folder: str, *pythons: str) -> None:
    os.environ.pop("PYTHONPATH", None)  # what this process finds by it, executors are not to find
    spark = start_session(LOCAL)
    for number, python in enumerate(pythons):
        spark.sparkContext.pythonExec = python  # what PYSPARK_PYTHON says when a session starts
        try:
            result = tallymark.write(spark.range(100), f"{folder}/{number}", mode="append")
        except tallymark.TallymarkError as error:
            print(type(error).__name__, error, sep=": ")
        else:
            print(f"{result.rows} rows")


if __name__ == "__main__":
    run(*sys.argv[1:])
