"""Spark's own Parquet writer with Hadoop's FileOutputCommitter; for dynamic overwrite with Spark's staging on top."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tallymark.bench.writes.case import WriteCase
from tallymark.bench.writes.order import Figures, Order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LEVEL = "1"
"""Of zstd: that of pyarrow, which Tallymark writes with. Parquet's Java library alone would take 3, which is slower."""


class FileOutputCommitter:
    """Algorithm 1 renames a task's files when the task ends and again when the job ends, 2 only when the task ends.

    With 2 the files of a job that fails may be seen. A dynamic overwrite takes a renaming of partitions besides.
    """

    jars = ()
    sparks = ()

    def __init__(self, algorithm: Literal[1, 2]) -> None:
        self._algorithm = algorithm
        self.title = f"FileOutputCommitter v{algorithm}"

    def conf(self, _scratch: Path) -> Mapping[str, str]:
        return {
            "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": str(self._algorithm),
            "spark.hadoop.parquet.compression.codec.zstd.level": LEVEL,
        }

    def absence(self, _case: WriteCase, _kind: str) -> str | None:
        return None

    def write(self, df: "DataFrame", order: Order) -> Figures:
        return write_parquet(df, order)

    def read(self, session: "SparkSession", target: str) -> "DataFrame":
        return session.read.parquet(target)


def write_parquet(df: "DataFrame", order: Order) -> Figures:
    """By Spark's own writer, whatever committer the session has."""
    writing = df.write.mode(order.mode).option("compression", order.codec)
    if order.mode == "overwrite":
        writing = writing.option("partitionOverwriteMode", order.partition_overwrite)
    if order.partition_by:
        writing = writing.partitionBy(*order.partition_by)
    writing.parquet(order.target)
    return {}
