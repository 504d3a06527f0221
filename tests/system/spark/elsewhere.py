"""Whole writes of Spark on stores that are not this machine's disk: the write, what disturbs it, and the judgement."""

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi import HudiTable
from pyspark import TaskContext, cloudpickle
from pyspark.sql import DataFrame, SparkSession

import tallymark
from tallymark import WriteResult
from tallymark.spark_glue import stage
from tests.support.place import Place
from tests.support.readers import arrow_table, nullable
from tests.support.services.s3_server import REGION
from tests.system.spark.jobs import EAGER
from tests.table_invariants import data_files, table_is_at_rest

BATCHES_BEFORE = 3
"""Of 100 rows each: by then the task's files are begun, and their markers acked."""

Act = Callable[[], None]


def write(
    df: DataFrame,
    place: Place,
    *,
    mode: Literal["append", "overwrite"] = "append",
    partition_overwrite: Literal["static", "dynamic"] = "dynamic",
) -> WriteResult:
    """As the session's Hadoop settings say where the store is."""
    return tallymark.write(
        df,
        place.native_url,
        mode=mode,
        partition_by=["part"],
        partition_overwrite=partition_overwrite,
        tasks=EAGER,
        progress=False,
    )


def reach(spark: SparkSession, place: Place) -> None:
    """Tell the session where the place is, as a user would in ``spark.hadoop.*``."""
    for name, value in place.spark_conf.items():
        spark.conf.set(name, value)


def disturb(patch: pytest.MonkeyPatch, flag: Path, act: Act) -> None:
    """Let the act happen once, in mid file, in the process that writes the first task's; the flag tells that it did."""
    patch.setattr(stage, "write_partition", disturbed(flag, act))


def disturbed(flag: Path, act: Act) -> Callable[[Any, Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """In place of ``stage.write_partition``."""
    return partial(_disturbed, stage.write_partition, flag, act)


def boom() -> None:
    raise RuntimeError("boom")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def _disturbed(
    write_partition: Callable[[Any, Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    flag: Path,
    act: Act,
    ticket: Any,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    assert context is not None

    def with_act() -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches):
            if number == BATCHES_BEFORE and context.partitionId() == 0 and not flag.exists():
                flag.touch()
                act()
            yield batch

    yield from write_partition(ticket, with_act())


def assert_at_rest(spark: SparkSession, place: Place, expected: DataFrame) -> dict[str, bytes]:
    """What lies there is what was committed, and fences that are logged; and each reader sees exactly these rows."""
    objects = place.objects()
    table_is_at_rest(objects)
    schema = nullable(expected)
    wanted = _sorted_rows(arrow_table(expected), schema)
    for reader, read in _readers(place).items():
        found = _sorted_rows(read(spark, place, objects), schema)
        assert len(found) == len(wanted), f"{reader} sees {len(found)} rows, not {len(wanted)}"
        assert found == wanted, f"{reader} sees other values"
    return objects


def _by_spark(spark: SparkSession, place: Place, _: dict[str, bytes]) -> pa.Table:
    """Spark's own connector, on the directory: it lists what is there, and takes partition columns from the paths."""
    return spark.read.parquet(place.native_url).toArrow()


def _by_tallymark(spark: SparkSession, place: Place, _: dict[str, bytes]) -> pa.Table:
    return arrow_table(tallymark.read(spark, place.url))


def _by_pyarrow(_: SparkSession, __: Place, objects: dict[str, bytes]) -> pa.Table:
    """The bytes of all data files, as the store's own client has fetched them."""
    return pa.concat_tables(pq.read_table(pa.BufferReader(objects[path])) for path in sorted(data_files(objects)))


def _by_hudi(_: SparkSession, place: Place, __: dict[str, bytes]) -> pa.Table:
    """hudi-rs, on the timeline, by its own client of S3."""
    assert place.options.endpoint is not None
    options = {"aws_endpoint": place.options.endpoint, "aws_region": REGION, "aws_allow_http": "true"}
    return pa.Table.from_batches(HudiTable(place.url, options).read())


def _readers(place: Place) -> dict[str, Callable[[SparkSession, Place, dict[str, bytes]], pa.Table]]:
    readers = {"Spark": _by_spark, "tallymark": _by_tallymark, "pyarrow": _by_pyarrow}
    return {**readers, "hudi-rs": _by_hudi} if place.url.startswith("s3:") else readers


def _sorted_rows(table: pa.Table, schema: pa.Schema) -> list[tuple[object, ...]]:
    columns: list[Any] = [table.column(field.name).cast(field.type).to_pylist() for field in schema]
    return sorted(zip(*columns, strict=True), key=repr)


cloudpickle.register_pickle_by_value(sys.modules[__name__])
