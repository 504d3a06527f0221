"""Values that a call names: what is taken, what is refused, and that they make the very path that rows make."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallymark.engine.arrow.conform import conform
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.partitions.columns import check_static, filled, missing_columns
from tallymark.engine.partitions.index import PartitionIndex
from tallymark.engine.partitions.static import StaticPartition
from tests.engine.tasks.scene import schema_of

TYPES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "int8": (pa.int8(), st.integers(-128, 127)),
    "int64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "string": (pa.string(), st.text(st.characters(codec="utf-8"), max_size=20)),
    "large_string": (pa.large_string(), st.text(st.characters(codec="utf-8"), max_size=20)),
    "bool": (pa.bool_(), st.booleans()),
    "date32": (pa.date32(), st.dates()),
    "decimal": (pa.decimal128(9, 3), st.decimals(-99999, 99999, places=3) | st.integers(-99999, 99999)),
}


def schema(type_: pa.DataType, *, nullable: bool = True) -> pa.Schema:
    return pa.schema([pa.field("part", type_, nullable=nullable), pa.field("row", pa.int64())])


def static(value: object, type_: pa.DataType, **named) -> StaticPartition:
    return StaticPartition.of(
        {"part": value}, keyword="partition", schema=schema(type_, **named), partition_by=["part"]
    )


@pytest.mark.parametrize("name", TYPES)
@given(data=st.data())
def test_a_value_makes_the_path_and_the_column_that_a_row_with_it_makes(name, data):
    type_, values = TYPES[name]
    value = data.draw(st.none() | values.filter(lambda drawn: drawn != "__HIVE_DEFAULT_PARTITION__"))
    whole = schema(type_)
    try:
        partition = static(value, type_)
    except InvalidRequest as error:
        assert "is longer than" in str(error) or ".marker." in str(error)  # noqa: PT017
        return
    with_it = pa.RecordBatch.from_arrays([pa.array([value, value], type_), pa.array([1, 2])], schema=whole)
    index = PartitionIndex(["part"])
    rows = conform(with_it, whole, ("part",))
    (number,) = index.place(rows).partitions
    assert partition.path == index.path(number)
    check_static(rows, partition)
    lacking = with_it.drop_columns(["part"])
    assert conform(filled(lacking, partition, whole), whole, ("part",)).equals(rows)


@pytest.mark.parametrize(
    ("value", "type_", "says"),
    [
        ("2013", pa.int32(), "column 'part' is int32, and '2013' is a str; give an int"),
        (2013.0, pa.int32(), "2013.0 is a float; give an int"),
        (True, pa.int32(), "True is a bool; give an int"),
        (2013, pa.string(), "2013 is a int; give a str"),
        (1, pa.bool_(), "1 is a int; give a bool"),
        ("2013-01-01", pa.date32(), "give a datetime.date"),
        (datetime(2013, 1, 1), pa.date32(), "is a datetime; give a datetime.date"),  # noqa: DTZ001
        (1.5, pa.decimal128(9, 2), "give a decimal.Decimal"),
        ([2013], pa.int32(), r"\[2013\] is a list"),
        (128, pa.int8(), "cannot hold 128"),
        (2**70, pa.int64(), "cannot hold 1180591620717411303424"),
        (Decimal("1.005"), pa.decimal128(9, 2), r"cannot hold Decimal\('1.005'\)"),
        (Decimal("NaN"), pa.decimal128(9, 2), "cannot hold"),
        ("\ud800", pa.string(), "cannot hold"),
        ("__HIVE_DEFAULT_PARTITION__", pa.string(), "is Hive's name for null; write null"),
        ("x" * 256, pa.string(), "is longer than 255 bytes"),
    ],
    ids=lambda given: repr(given)[:30],
)
def test_a_value_of_another_type_or_one_that_does_not_fit_is_refused(value, type_, says):
    with pytest.raises(InvalidRequest, match=says) as caught:
        static(value, type_)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [None, ""])
def test_null_and_the_empty_string_are_refused_where_the_column_takes_no_null(value):
    with pytest.raises(InvalidRequest, match="takes no null"):
        static(value, pa.string(), nullable=False)
    assert static(value, pa.string()).path == "part=__HIVE_DEFAULT_PARTITION__"


def test_an_int_of_numpy_is_an_int():
    assert static(np.int64(7), pa.int32()).path == "part=7"


BY = ["year", "month", "day"]
DAYS = schema_of(flight=pa.int64(), year=pa.int32(), month=pa.int32(), day=pa.int32())


@pytest.mark.parametrize(
    ("named", "partition_by", "says"),
    [
        ({"month": 1}, BY, "leaves out 'year'"),
        ({"year": 2013, "day": 1}, BY, "leaves out 'month'"),
        ({"yaer": 2013}, BY, r"'yaer' is not a partition column; .* is partitioned by \['year', 'month', 'day'\]"),
        ({"flight": 2013}, BY, "'flight' is not a partition column"),
        ({"year": 2013}, [], "the table is not partitioned"),
    ],
)
def test_columns_that_are_not_the_first_of_the_tables_are_refused(named, partition_by, says):
    with pytest.raises(InvalidRequest, match=says):
        StaticPartition.of(named, keyword="partition", schema=DAYS, partition_by=partition_by)


def test_the_order_in_which_values_are_named_does_not_matter():
    partition = StaticPartition.of({"month": 1, "year": 2013}, keyword="partition", schema=DAYS, partition_by=BY)
    assert partition.path == "year=2013/month=1"
    assert partition.contains("year=2013/month=1/day=9")
    assert not partition.contains("year=2013/month=10")
    assert not partition.contains("year=2013")


def test_a_row_with_another_value_is_named_by_it():
    partition = StaticPartition.of({"year": 2013}, keyword="partition", schema=DAYS, partition_by=BY)
    for stray in (2014, None):
        batch = pa.RecordBatch.from_pylist([{"year": year} for year in (2013, stray)], schema=DAYS)
        with pytest.raises(InvalidRequest, match=rf"a row has year={stray}, .* partition={{'year': 2013}}"):
            check_static(batch, partition)
    null = StaticPartition.of({"year": None}, keyword="partition", schema=DAYS, partition_by=BY)
    with pytest.raises(InvalidRequest, match="a row has year=2013"):
        check_static(pa.RecordBatch.from_pylist([{"year": 2013}], schema=DAYS), null)


def test_a_new_tables_column_is_of_its_values_type():
    given_values = {"b": True, "i": 2013, "s": "x", "d": date(2013, 1, 1)}
    found = missing_columns(schema_of(row=pa.int64()), given_values, table=None)
    types = {"b": pa.bool_(), "i": pa.int64(), "s": pa.string(), "d": pa.date32()}
    assert [(field.name, field.type) for field in found] == [*types.items()]


@pytest.mark.parametrize("value", [None, 1.5, Decimal("1.5"), datetime(2013, 1, 1)])  # noqa: DTZ001
def test_a_value_that_tells_no_type_makes_no_new_column(value):
    with pytest.raises(InvalidRequest, match=r"does not determine its type.*add the column to the input"):
        missing_columns(schema_of(row=pa.int64()), {"part": value}, table=None)
