"""Partition paths, their prefixes, their values as users type them, and their numbers in a batch."""

from datetime import date
from decimal import Decimal
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallymark.backends.contract import check_path
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.markers.name import MarkerName
from tallymark.engine.partitions.index import PartitionIndex
from tallymark.engine.partitions.path import NULL_PARTITION, PartitionValue, partition_path, partition_values
from tests.engine.tasks.scene import schema_of

# What Spark 4.3's partitionBy made of these values on a local disk.
AS_SPARK = [
    (None, NULL_PARTITION),
    ("", NULL_PARTITION),
    ("01", "01"),
    ("a b ", "a b "),
    ("caf\u00e9", "caf\u00e9"),
    ("cafe\u0301", "cafe\u0301"),
    ("\U0001f600", "\U0001f600"),
    ("\u0080\u00a0", "\u0080\u00a0"),
    (".", "."),
    ("..", ".."),
    ("null", "null"),
    (-5, "-5"),
    (0, "0"),
    (-(2**63), "-9223372036854775808"),
    (True, "true"),
    (False, "false"),
    (date(2013, 1, 1), "2013-01-01"),
    (date(1, 1, 1), "0001-01-01"),
    (date(9999, 12, 31), "9999-12-31"),
    (Decimal("1.500000000000000000"), "1.500000000000000000"),
    (Decimal("-1E-18"), "-0.000000000000000001"),
    (Decimal("0E-18"), "0.000000000000000000"),
    (Decimal("100.00"), "100.00"),
    (Decimal(-7), "-7"),
]

SPARK_ESCAPES = {*range(1, 0x20), *map(ord, "\"#%'*/:=?[\\]^{"), 0x7F}


@pytest.mark.parametrize(("value", "segment"), AS_SPARK, ids=repr)
def test_a_value_stands_in_the_path_as_spark_writes_it(value, segment):
    assert partition_path(["p"], [value]) == f"p={segment}"


@pytest.mark.parametrize("code", range(0x80))
def test_the_escaped_ascii_characters_are_sparks_and_nul_which_it_cannot_write(code):
    expected = f"%{code:02X}" if code in {0, *SPARK_ESCAPES} else chr(code)
    assert partition_path(["p"], [f"a{chr(code)}b"]) == f"p=a{expected}b"


def test_column_names_are_escaped_and_segments_stand_in_order():
    assert partition_path(["a b/c=%\u00e9", "m"], ["x", 1]) == "a b%2Fc%3D%25\u00e9=x/m=1"
    assert partition_path([], []) == ""


# Those of storage are Unicode without surrogates.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20).filter(
    lambda text: text != NULL_PARTITION and ".marker." not in text
)


@settings(deadline=None)
@given(texts.filter(bool))
def test_any_text_round_trips_through_a_path_that_every_store_takes(text):
    path = partition_path(["p"], [text])
    assert unquote(path).removeprefix("p=") == text
    assert "/" not in path
    assert check_path(path) == path
    assert MarkerName.of(f"{path}/f.parquet").path == f"{path}/f.parquet"


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("x" * 254, "longer than 255 bytes"),
        ("\u00e9" * 127, "longer than 255 bytes"),
        ("/" * 85, "longer than 255 bytes"),
        (NULL_PARTITION, "Hive's name for null"),
        ("a.marker.b", "how markers are recognized"),
    ],
)
def test_a_value_that_no_path_can_carry_is_refused_by_name(value, rule):
    with pytest.raises(InvalidRequest, match=rf"column 'p'.*{rule}"):
        partition_path(["p"], [value])
    assert len(partition_path(["p"], ["x" * 253])) == 255


def test_a_path_too_long_as_a_whole_is_refused():
    with pytest.raises(InvalidRequest, match="longer than 768 bytes"):
        partition_path("abcd", ["x" * 200] * 4)


TYPES: list[tuple[pa.DataType, PartitionValue]] = [
    (pa.int32(), 2013),
    (pa.int64(), -1),
    (pa.string(), "a/b=c d"),
    (pa.string(), None),
    (pa.bool_(), True),
    (pa.date32(), date(2013, 1, 2)),
    (pa.decimal128(5, 2), Decimal("1.50")),
]


@pytest.mark.parametrize(("type_", "value"), TYPES, ids=str)
def test_a_path_gives_back_the_values_that_it_was_made_from(type_, value):
    fields: list[pa.Field[Any]] = [pa.field("p", type_), pa.field("q", pa.int32())]
    path = partition_path(["p", "q"], [value, 1])
    assert partition_values(path, pa.schema(fields), ["p", "q"]) == {"p": value, "q": 1}
    assert partition_values(path.partition("/")[0], pa.schema(fields), ["p", "q"]) == {"p": value}


@pytest.mark.parametrize(
    ("type_", "text"), [(pa.int32(), "May"), (pa.bool_(), "1"), (pa.date32(), "2013"), (pa.decimal128(5, 2), "x")]
)
def test_text_that_is_no_value_of_its_column_is_refused(type_, text):
    fields: list[pa.Field[Any]] = [pa.field("p", type_)]
    with pytest.raises(InvalidRequest, match=f"p='{text}': the column is"):
        partition_values(f"p={text}", pa.schema(fields), ["p"])


KEYS = schema_of(a=pa.string(), b=pa.int8(), c=pa.bool_(), d=pa.decimal128(3, 1), e=pa.date32())
rows = st.lists(
    st.fixed_dictionaries(
        {
            "a": st.sampled_from([None, "x", "X", "x/y", "\u00e9", "e\u0301"]),
            "b": st.none() | st.integers(-2, 2),
            "c": st.sampled_from([None, True, False]),
            "d": st.sampled_from([None, Decimal("-0.1"), Decimal("10.0")]),
            "e": st.none() | st.dates(),
        }
    ),
    min_size=1,
    max_size=30,
)


@settings(deadline=None)
@given(st.lists(rows, min_size=1, max_size=3), st.lists(st.sampled_from(KEYS.names), unique=True))
def test_each_row_gets_the_path_of_its_values_and_each_path_one_number(batches, columns):
    index = PartitionIndex(columns)
    seen: dict[str, int] = {}
    for batch in batches:
        placed = index.place(pa.RecordBatch.from_pylist(batch, schema=KEYS))
        numbers: list[Any] = placed.numbers.to_pylist()
        expected = [partition_path(columns, [row[column] for column in columns]) for row in batch]
        assert [index.path(number) for number in numbers] == expected
        assert placed.partitions == tuple(dict.fromkeys(numbers))
        for number, path in zip(numbers, expected, strict=True):
            assert seen.setdefault(path, number) == number
    assert sorted(seen.values()) == list(range(len(seen)))
