"""Delta Lake."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tallymark.bench.peers.writers.committers import LEVEL
from tallymark.bench.writes.case import WriteCase
from tallymark.bench.writes.order import Figures, Order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RELEASE = "4.4.0"


class Delta:
    """Writes data files where they stay and commits by one entry of its log; replaced files stay until a VACUUM."""

    title = f"Delta {RELEASE}"
    jars = (f"io.delta:delta-spark_4.2_2.13:{RELEASE}", f"io.delta:delta-storage:{RELEASE}")
    sparks = ("4.2",)
    """The newest that there are jars for; it runs in a Python of its own (``--python delta=PATH``)."""

    def conf(self, _scratch: Path) -> Mapping[str, str]:
        return {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.hadoop.parquet.compression.codec.zstd.level": LEVEL,
        }

    def absence(self, _case: WriteCase, _kind: str) -> str | None:
        return None

    def write(self, df: "DataFrame", order: Order) -> Figures:
        df.sparkSession.conf.set("spark.sql.parquet.compression.codec", order.codec)
        if order.mode == "upsert":
            return _merge(df, order)
        writing = df.write.format("delta").mode(order.mode)
        if order.mode == "overwrite":
            writing = writing.option("partitionOverwriteMode", order.partition_overwrite)
        if order.partition_by:
            writing = writing.partitionBy(*order.partition_by)
        writing.save(order.target)
        return {}

    def read(self, session: "SparkSession", target: str) -> "DataFrame":
        return session.read.format("delta").load(target)


def _merge(df: "DataFrame", order: Order) -> Figures:
    df.createOrReplaceTempView("changes")
    df.sparkSession.sql(
        f"MERGE INTO delta.`{order.target}` AS stored USING changes ON stored.{order.record_key} = "
        f"changes.{order.record_key} WHEN MATCHED AND changes.{order.order_by} >= stored.{order.order_by} "
        "THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
    return {}
