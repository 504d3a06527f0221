"""Whole writes of Spark on this machine's disk or elsewhere: the place, what disturbs the write, and the judgement."""

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hudi import HudiTable
from pyspark import TaskContext, cloudpickle
from pyspark.sql import DataFrame, SparkSession

import tallymark
from tallymark.spark_glue import stage
from tests.support import storage
from tests.support.hadoop_aws import hadoop_aws_jars
from tests.support.place import Place, place_on
from tests.support.readers import arrow_table, assert_agree, assert_readers_agree
from tests.support.services.s3_server import REGION
from tests.table_invariants import committed_files, data_files, table_is_at_rest

BATCHES_BEFORE = 3
"""Of 100 rows each: by then the task's files are begun, and their markers acked."""

Act = Callable[[], None]


@pytest.fixture
def place(request: pytest.FixtureRequest, store: str, spark: SparkSession, tmp_path: Path) -> Place:
    """A new one on the store, whose whereabouts the session knows as a user would tell them, in ``spark.hadoop.*``."""
    if store == "local":
        table = tmp_path / "table"
        return Place(url=str(table), objects=partial(storage.objects, table))
    if store == "s3":
        hadoop_aws_jars()
    found = place_on(store, request)
    for name, value in found.spark_conf.items():
        spark.conf.set(name, value)
    return found


def disturb(patch: pytest.MonkeyPatch, flag: Path | None, act: Act) -> None:
    """Let the act happen in mid file, in the process that writes the first task's: once, which the flag tells, or in
    each attempt where there is none.
    """
    patch.setattr(stage, "write_partition", disturbed(flag, act))


def disturbed(flag: Path | None, act: Act) -> Callable[..., Iterator[pa.RecordBatch]]:
    """In place of ``stage.write_partition``."""
    return partial(_disturbed, stage.write_partition, flag, act)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def _disturbed(
    write_partition: Callable[..., Iterator[pa.RecordBatch]],
    flag: Path | None,
    act: Act,
    ticket: Any,
    batches: Iterable[pa.RecordBatch],
    **planned: Any,
) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    assert context is not None

    def with_act() -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(batches):
            if number == BATCHES_BEFORE and context.partitionId() == 0 and not (flag and flag.exists()):
                if flag:
                    flag.touch()
                act()
            yield batch

    yield from write_partition(ticket, with_act(), **planned)


def assert_at_rest(spark: SparkSession, place: Place, expected: DataFrame) -> dict[str, bytes]:
    """What lies there is what was committed, and fences that are logged; and each reader sees exactly these rows."""
    objects = place.objects()
    table_is_at_rest(objects)
    if "://" not in place.url:  # a writer that was killed may have died in the middle of a beat's put
        assert storage.exactly_the_committed_files(Path(place.url), scratch=True) == committed_files(objects)
        assert_readers_agree(spark, Path(place.url), expected)
    else:
        assert_agree(expected, {name: read(spark, place, objects) for name, read in _readers(place).items()})
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


cloudpickle.register_pickle_by_value(sys.modules[__name__])
