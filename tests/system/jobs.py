"""The write that the tests of this folder disturb."""

from pathlib import Path
from typing import Literal

from pyspark.sql import DataFrame, SparkSession

import tallymark
from tallymark import TaskSettings, WriteResult

EAGER = TaskSettings(row_group_bytes=1, buffer_bytes=1 << 20)
"""Files are begun with the first rows, so that a fault finds some of them half written."""


def wide_rows(spark: SparkSession, *, version: int = 0, partitions: int = 3) -> DataFrame:
    """Two tasks of 1,500 rows, wide enough that batches do not linger in Spark's buffers."""
    return spark.range(0, 3000, 1, 2).selectExpr(
        "id",
        f"{version} AS version",
        "repeat(md5(string(id)), 64) AS payload",
        f"concat('p', id % {partitions}) AS part",
    )


def write(
    df: DataFrame, table: Path, *, mode: Literal["append", "overwrite"] = "append", txn: str | None = None
) -> WriteResult:
    """An append, or a dynamic overwrite."""
    return tallymark.write(
        df, str(table), mode=mode, partition_by=["part"], partition_overwrite="dynamic", txn=txn, tasks=EAGER
    )
