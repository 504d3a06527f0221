"""The process of one side: a Spark session that stays warm, and does one write for each line on stdin.

The first line says which writer and with what settings; each answer is one line. Standard output is kept for answers:
what Spark and its JVM print goes to standard error.
"""

import json
import os
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

from tallymark.bench.child import answer, own_stdout
from tallymark.bench.peers.writers import Writer, writer
from tallymark.bench.writes.killer import doomed
from tallymark.bench.writes.order import Done, Order
from tallymark.bench.writes.process_tree import peaks, read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def main(lines: Iterable[str], answers: TextIO) -> None:
    """Until the lines end."""
    lines = iter(lines)
    begin = json.loads(next(lines))
    side = writer(begin["writer"])
    session = _session(begin["conf"])
    answer(answers, {"spark": session.version})
    for line in lines:
        asked = json.loads(line)
        if "count" in asked:
            answer(answers, {"rows": side.read(session, asked["count"]).count()})
        elif "look" in asked:
            answer(answers, _seen(side.read(session, asked["look"])))
        else:
            answer(answers, json.loads(_done(session, side, Order.decode(line)).encode()))
    session.stop()


def _session(conf: dict[str, str]) -> "SparkSession":
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("tallymark-bench")
    for name, value in conf.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _done(session: "SparkSession", side: Writer, order: Order) -> Done:
    """One write, from the call to its return, without the look at the source's schema that makes the DataFrame."""
    df = session.read.parquet(order.source)
    if order.kill is not None:
        df = doomed(df, order.kill)
    before, began = read(os.getpid()), time.perf_counter()
    figures = side.write(df, order)
    wall_s = time.perf_counter() - began
    taken, held = read(os.getpid()).since(before), peaks(os.getpid())
    memory = {"peak_jvm_bytes": held.jvm_bytes, "peak_python_bytes": held.python_bytes}
    return Done(wall_s=wall_s, spent=taken, figures={**figures, **memory})


def _seen(df: "DataFrame") -> dict[str, object]:
    """Rows, and the files that hold them."""
    from pyspark.sql import functions

    rows = df.groupBy(functions.input_file_name().alias("file")).count().collect()
    return {"rows": sum(row["count"] for row in rows), "files": [row["file"] for row in rows]}


if __name__ == "__main__":
    main(sys.stdin, own_stdout())
