"""Write with a session that was stopped, and with one whose Java was killed: ``python -m ... <table>``.

Prints both errors, one line each.
"""

import sys
from typing import Any

from pyspark import SparkContext

import tallymark
from tests.support.spark import LOCAL, start_session


def run(table: str) -> None:
    spark = start_session(LOCAL)
    df = spark.range(10)
    spark.stop()
    print(word_of(df, table))
    df = start_session(LOCAL).range(10)
    gateway: Any = SparkContext._gateway
    gateway.proc.kill()
    gateway.proc.wait()
    print(word_of(df, table))


def word_of(df: Any, table: str) -> str:
    try:
        return str(tallymark.write(df, table, mode="append"))
    except tallymark.InvalidRequest as error:
        return str(error)


if __name__ == "__main__":
    run(*sys.argv[1:])
