"""The write that the tests of this folder disturb, and two at once."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Literal

from pyspark.sql import DataFrame, SparkSession

import tallymark
from tallymark import SizingSettings, TaskSettings, WriteResult
from tests.system.spark import faults

EAGER = TaskSettings(row_group_bytes=1 << 15, buffer_bytes=1 << 20)
"""Files are begun with the first batch of ``wide_rows``, so that a fault finds some of them half written. Smaller row
groups would have readers at them for most of a test: each tells its least and its greatest value."""


def wide_rows(spark: SparkSession, *, version: int = 0, partitions: int = 3, count: int = 3000) -> DataFrame:
    """Two tasks of half of them, wide enough that batches do not linger in Spark's buffers."""
    return spark.range(0, count, 1, 2).selectExpr(
        "id",
        f"{version} AS version",
        "repeat(md5(string(id)), 64) AS payload",
        f"concat('p', id % {partitions}) AS part",
    )


def write(
    df: DataFrame,
    table: Path | str,
    *,
    mode: Literal["append", "overwrite"] = "append",
    partition_overwrite: Literal["static", "dynamic"] = "dynamic",
    txn: str | None = None,
    sizing: SizingSettings | None = None,
) -> WriteResult:
    return tallymark.write(
        df,
        str(table),
        mode=mode,
        partition_by=["part"],
        partition_overwrite=partition_overwrite,
        txn=txn,
        tasks=EAGER,
        sizing=sizing,
    )


def run_both(folder: Path, *jobs: tuple[DataFrame, Callable[[DataFrame], WriteResult]]) -> list[Future[WriteResult]]:
    """Two jobs of one task each, at once: each waits in its task until the other has come as far."""
    flags = [folder / "first", folder / "second"]
    with ThreadPoolExecutor(2) as drivers:
        return [
            drivers.submit(write_rows, faults.with_fault(df, partial(faults.meet, mine, theirs)))
            for (df, write_rows), mine, theirs in zip(jobs, flags, reversed(flags), strict=True)
        ]
