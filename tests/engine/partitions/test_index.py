from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.partitions.index import PartitionIndex
from tallymark.engine.partitions.path import partition_path
from tests.engine.tasks.scene import schema_of

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


def test_a_value_that_no_path_can_carry_is_refused():
    with pytest.raises(InvalidRequest, match="column 'a'"):
        PartitionIndex(["a"]).place(pa.record_batch({"a": ["x", "x" * 300]}))
