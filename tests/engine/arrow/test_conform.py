import decimal
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

from tallymark.engine.arrow.conform import conform
from tallymark.engine.errors import InvalidRequest
from tests.engine.tasks.scene import schema_of

ID: "pa.Field[Any]" = pa.field("id", pa.int64(), nullable=False)
SCHEMA = schema_of(id=pa.int64(), name=pa.string()).set(0, ID).with_metadata({"k": "v"})


def one(name, array, target=None):
    """A column after conform, where only its type differs from the schema's."""
    schema = pa.schema([(name, target)])
    return conform(pa.RecordBatch.from_arrays([array], names=[name]), schema).column(0)


def test_columns_are_matched_by_name_and_the_result_has_exactly_the_schema():
    batch = pa.record_batch({"name": ["a", None], "id": pa.array([1, 2], pa.int32())})
    rows = conform(batch, SCHEMA)
    assert rows.schema.equals(SCHEMA, check_metadata=True)
    assert rows.to_pylist() == [{"id": 1, "name": "a"}, {"id": 2, "name": None}]


def test_a_batch_that_fits_is_not_copied():
    batch = pa.RecordBatch.from_arrays([pa.array([1, 2]), pa.array(["a", "b"])], schema=SCHEMA)
    rows = conform(batch, SCHEMA)
    assert [a.address for a in rows.column(0).buffers() if a] == [a.address for a in batch.column(0).buffers() if a]


@pytest.mark.parametrize(
    ("columns", "rule"),
    [
        ({"id": [1]}, r"column 'name' \(string\) is missing from a batch"),
        ({"id": [1], "name": ["a"], "more": [True]}, r"column 'more' \(bool\) of a batch is not in the table's schema"),
        ({"id": ["1"], "name": ["a"]}, r"column 'id' is string in a batch and int64 in the table's schema"),
        ({"id": [1.0], "name": ["a"]}, r"column 'id' is double in a batch and int64 in the table's schema"),
        ({"id": [1], "name": [1]}, r"column 'name' is int64 in a batch and string in the table's schema"),
        ({"id": [1], "name": [b"a"]}, r"column 'name' is binary in a batch and string in the table's schema"),
        ({"id": [1, None], "name": ["a", "b"]}, r"column 'id' has 1 nulls, and the table's schema allows none"),
    ],
)
def test_a_batch_of_another_schema_is_refused_with_column_and_types(columns, rule):
    with pytest.raises(InvalidRequest, match=rule):
        conform(pa.record_batch(columns), SCHEMA)


def test_a_column_given_twice_is_refused():
    batch = pa.RecordBatch.from_arrays([pa.array([1])] * 2 + [pa.array(["a"])], names=["id", "id", "name"])
    with pytest.raises(InvalidRequest, match=r"'id'.*stands 2 times in a batch"):
        conform(batch, SCHEMA)


def test_pandas_nanoseconds_become_microseconds_where_nothing_is_lost():
    assert one("at", pa.array([5000], pa.timestamp("ns")), pa.timestamp("us")).cast(pa.int64()).to_pylist() == [5]
    with pytest.raises(
        InvalidRequest, match=r"column 'at' is timestamp\[ns\] in a batch and timestamp\[us\].*lose data"
    ):
        one("at", pa.array([5001], pa.timestamp("ns")), pa.timestamp("us"))


def test_an_empty_string_in_a_partition_column_becomes_null_and_elsewhere_stays():
    schema = pa.schema([("p", pa.string()), ("q", pa.large_string()), ("v", pa.string())])
    batch = pa.record_batch({"p": ["", "a", None], "q": ["b", "", ""], "v": ["", "", "c"]})
    rows = conform(batch, schema, ("p", "q"))
    assert rows.to_pydict() == {"p": [None, "a", None], "q": ["b", None, None], "v": ["", "", "c"]}


def test_an_empty_string_in_a_partition_column_without_nulls_is_refused():
    schema = schema_of(p=pa.string(), v=pa.int64()).set(0, pa.field("p", pa.string(), nullable=False))
    with pytest.raises(InvalidRequest, match="column 'p' has 1 nulls or empty strings, which are null in a partition"):
        conform(pa.record_batch({"p": ["a", ""], "v": [1, 2]}), schema, ("p",))


AT = datetime(2013, 1, 1, 5, tzinfo=timezone(timedelta(hours=-5)))
NESTED = pa.list_(pa.struct([("a", pa.int32())]))


@pytest.mark.parametrize(
    ("array", "target", "values"),
    [
        (pa.array([AT], pa.timestamp("us", "America/New_York")), pa.timestamp("us", "UTC"), [AT]),
        (pa.nulls(2), pa.list_(pa.decimal128(5, 2)), [None, None]),
        (pa.array(["a", None]).dictionary_encode(), pa.string(), ["a", None]),
        (pa.array(["a"], pa.string_view()), pa.large_string(), ["a"]),
        (pa.array([[{"a": 1}]], NESTED), pa.large_list(pa.struct([("a", pa.int64())])), [[{"a": 1}]]),
        (pa.array([1], pa.int32()), pa.decimal128(12, 2), [decimal.Decimal("1.00")]),
    ],
    ids=["time zone", "nothing", "dictionary", "view", "nested", "decimal"],
)
def test_another_label_or_layout_costs_no_value(array, target, values):
    column = one("x", array, target)
    assert column.type == target
    assert column.to_pylist() == values
