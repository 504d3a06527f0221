"""Hudi's own writers in a process that does what it reads from standard input: a line per command and per answer.

``python -m tests.spark.hudi.program KEY=VALUE...``, with settings of the session. To start a Spark takes longer than
most commands do.
"""

import json
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

SESSION = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.serializer": "org.apache.spark.serializer.KryoSerializer",
    "spark.sql.extensions": "org.apache.spark.sql.hudi.HoodieSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.hudi.catalog.HoodieCatalog",
}


class Program:
    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def write(
        self,
        path: str,
        options: Mapping[str, str],
        ids: tuple[int, int],
        at: int,
        lands: Sequence[str],
        tasks: int,
        fails_at: int,
    ) -> None:
        """Write a range of ids, by turns into these partitions. The task that reads the row of ``fails_at`` raises."""
        names = ",".join("'" + land.replace("\\", "\\\\").replace("'", "\\'") + "'" for land in lands)
        frame = self._spark.range(*ids, numPartitions=tasks).selectExpr(
            f"if(id = {fails_at}, cast(raise_error('failed half way') as long), id) as id",
            f"element_at(array({names}), cast(id % {len(lands)} as int) + 1) as land",
            f"cast({at} as long) as at",
            f"id * {at} as value",
        )
        try:
            frame.write.format("hudi").options(**options).mode("append").save(path)
        finally:
            self._await_tasks()

    def _await_tasks(self) -> None:
        """Return when no task is running: Spark reports a failed job while other tasks of it are still writing."""
        tracker = self._spark._jsc.sc().statusTracker()
        never = threading.Event()
        while any(executor.numRunningTasks() for executor in tracker.getExecutorInfos()):
            never.wait(0.05)

    def read(self, path: str) -> dict[str, tuple[int, int]]:
        """Return the number of rows and the sum of their values by partition."""
        found = self._spark.read.format("hudi").load(path).groupBy("land").agg({"*": "count", "value": "sum"})
        return {row[0]: (row["count(1)"], row["sum(value)"]) for row in found.collect()}

    def call(self, statement: str, options: Mapping[str, str]) -> list[list[Any]]:
        """Run a procedure of Hudi's SQL with these options of its writer."""
        for name, value in options.items():
            self._spark.conf.set(name, value)
        try:
            return [[*map(str, row)] for row in self._spark.sql(f"call {statement}").collect()]
        finally:
            self._await_tasks()
            for name in options:
                self._spark.conf.unset(name)

    def committed(self, path: str) -> list[str]:
        """Return the paths of the files that the completed instants of Hudi's timeline name."""
        jvm: Any = self._spark._jvm
        hadoop = jvm.org.apache.hudi.storage.hadoop.HadoopStorageConfiguration(self._spark._jsc.hadoopConfiguration())
        client = jvm.org.apache.hudi.common.table.HoodieTableMetaClient.builder().setConf(hadoop).setBasePath(path)
        timeline = client.build().getActiveTimeline().getCommitsTimeline().filterCompletedInstants()
        found = set[str]()
        for instant in timeline.getInstants():
            metadata = jvm.org.apache.hudi.common.table.timeline.TimelineUtils.getCommitMetadata(instant, timeline)
            found.update(stat.getPath() for stat in metadata.getWriteStats())
        return sorted(found)


def main() -> None:
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    given = dict(pair.split("=", 1) for pair in sys.argv[1:])
    program = Program(SparkSession.builder.master("local[2]").config(map={**SESSION, **given}).getOrCreate())
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        try:
            answer = {"answer": getattr(program, name)(*arguments)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print("ANSWER", json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
