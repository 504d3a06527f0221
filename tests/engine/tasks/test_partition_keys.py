import pyarrow as pa
import pytest

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.partitions.index import PartitionIndex
from tallymark.engine.partitions.static import StaticPartition
from tallymark.engine.tasks.partition_keys import partition_paths
from tests.engine.tasks.scene import schema_of

SCHEMA = schema_of(flight=pa.int64(), year=pa.int32(), tail=pa.string())
BY = ("year", "tail")


def keys(**columns: list[object]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {name: pa.array(values, SCHEMA.field(name).type) for name, values in columns.items()}
    )


def static(**given: object) -> StaticPartition:
    return StaticPartition.of(given, keyword="partition", schema=SCHEMA, partition_by=BY)


def test_paths_are_those_that_a_task_writes_to():
    found = keys(year=[2013, None, 2013], tail=["a/b", "", None])
    rows = found.append_column("flight", pa.array([1, 2, 3], pa.int64())).select(SCHEMA.names)
    index = PartitionIndex(BY)
    numbers = index.place(rows.slice(0, 1)).partitions
    assert partition_paths(found, 3, schema=SCHEMA, partition_by=BY) == [
        index.path(numbers[0]),
        "year=__HIVE_DEFAULT_PARTITION__/tail=__HIVE_DEFAULT_PARTITION__",
        "year=2013/tail=__HIVE_DEFAULT_PARTITION__",
    ]


def test_static_columns_may_be_missing_in_part_or_all():
    some = partition_paths(keys(tail=["x", "y"]), 2, schema=SCHEMA, partition_by=BY, partition=static(year=2014))
    assert some == ["year=2014/tail=x", "year=2014/tail=y"]
    none = pa.RecordBatch.from_arrays([], [])
    whole = partition_paths(none, 1, schema=SCHEMA, partition_by=BY, partition=static(year=2014, tail="x"))
    assert whole == ["year=2014/tail=x"]


def test_a_table_without_partitions_has_one_path_and_no_rows_have_none():
    none = pa.RecordBatch.from_arrays([], [])
    assert partition_paths(none, 2, schema=SCHEMA, partition_by=()) == ["", ""]
    assert partition_paths(none, 0, schema=SCHEMA, partition_by=BY, partition=static(year=2014, tail="x")) == []


def test_a_row_outside_of_the_static_partition_is_refused():
    with pytest.raises(InvalidRequest, match="a row has year=2013"):
        partition_paths(keys(year=[2013], tail=["x"]), 1, schema=SCHEMA, partition_by=BY, partition=static(year=2014))
