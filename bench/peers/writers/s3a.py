"""Spark's own Parquet writer with the committers of Hadoop's S3 connector, which rename nothing."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tallymark.bench.peers.writers.committers import LEVEL, write_parquet
from tallymark.bench.writes.case import WriteCase
from tallymark.bench.writes.order import Figures, Order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BINDING = ("org.apache.spark:spark-hadoop-cloud_2.13:4.1.2",)
"""The classes that tie Spark's commit protocol to these committers: the newest in Maven Central, of an earlier Spark.
They are a few small classes, which run on Spark 4.3 as they are."""

_CLOUD = "org.apache.spark.internal.io.cloud"
_NAME = "fs.s3a.committer.name"
_CONFLICT = "fs.s3a.committer.staging.conflict-mode"


class S3ACommitter:
    """``magic``: tasks upload to where the files will stay, and the uploads are completed by the job's commit.

    ``staging``: tasks write to local disk, upload when they end, and the uploads are completed by the job's commit; as
    ``directory``, or for a dynamic overwrite as ``partitioned``, which replaces the partitions that have rows.
    """

    jars = BINDING
    sparks = ()

    def __init__(self, name: Literal["magic", "staging"]) -> None:
        self._name = name
        self.title = f"S3A {name} committer"

    def conf(self, scratch: Path) -> Mapping[str, str]:
        return {
            "spark.sql.sources.commitProtocolClass": f"{_CLOUD}.PathOutputCommitProtocol",
            "spark.sql.parquet.output.committer.class": f"{_CLOUD}.BindingParquetOutputCommitter",
            f"spark.hadoop.{_NAME}": "magic" if self._name == "magic" else "directory",
            "spark.hadoop.fs.s3a.committer.staging.tmp.path": f"file://{scratch}/staging",
            "spark.hadoop.parquet.compression.codec.zstd.level": LEVEL,
        }

    def absence(self, case: WriteCase, kind: str) -> str | None:
        if kind != "s3":
            return "it is a committer for S3"
        if self._name == "magic" and case.name == "dynamic-overwrite":
            return "it has no dynamic overwrite"
        return None

    def write(self, df: "DataFrame", order: Order) -> Figures:
        if order.partition_overwrite == "static":
            return write_parquet(df, order)
        writing = df.write.mode("append").option("compression", order.codec)
        writing = writing.option(_NAME, "partitioned").option(_CONFLICT, "replace")
        writing.partitionBy(*order.partition_by).parquet(order.target)
        return {"committer": "partitioned"}

    def read(self, session: "SparkSession", target: str) -> "DataFrame":
        return session.read.parquet(target)
