from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.partitions.path import PartitionValue, partition_path, partition_values

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
