"""Program that writes tables of Hudi by Spark 3.5: one session, and one job for each line on stdin.

The driver and the executor are processes of their own, so that the CPU of the driver can be read by itself. The first
line has the settings of the session; each answer is one line. Standard output is for answers: what Spark and its JVM
print goes to standard error.
"""

import json
import os
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TextIO

import psutil

from tallymark.bench.child import answer, own_stdout

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main(lines: Iterable[str], answers: TextIO) -> None:
    """Work until the lines end."""
    lines = iter(lines)
    session = _session(json.loads(next(lines)))
    answer(answers, {"spark": session.version})
    for line in lines:
        [(verb, request)] = json.loads(line).items()
        if verb == "write":
            answer(answers, _written(session, request))
        elif verb == "count":
            answer(answers, {"rows": session.read.format("hudi").load(request).count()})
        else:
            session.stop()
            answer(answers, {})


def _session(conf: dict[str, str]) -> "SparkSession":
    from pyspark.sql import SparkSession

    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.appName("tallymark-bench")
    for name, value in conf.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _written(session: "SparkSession", request: dict[str, Any]) -> dict[str, float]:
    """Write rows of all partitions in each task, and return the seconds that it has taken."""
    rows = session.range(0, request["rows"], numPartitions=request["tasks"])
    frame = rows.selectExpr("id", f"id % {request['partitions']} AS part", "id AS at", "id * 3 AS value")
    before, began = _cpu_s(session), time.perf_counter()
    frame.write.format("hudi").options(**request["options"]).mode(request["mode"]).save(request["table"])
    wall_s, after = time.perf_counter() - began, _cpu_s(session)
    return {"wall_s": wall_s, "driver_s": after[0] - before[0], "executors_s": after[1] - before[1]}


def _cpu_s(session: "SparkSession") -> tuple[float, float]:
    """Return the CPU seconds of the driver's JVM, and of its executors, so far."""
    driver = psutil.Process(session.sparkContext._gateway.proc.pid)  # type: ignore[union-attr]
    return _own(driver), sum(map(_own, driver.children(recursive=True)))


def _own(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


if __name__ == "__main__":
    main(sys.stdin, own_stdout())
