"""Plain bytes are those of the values: a sliced, chunked or cast column counts the same."""

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from tallymark.engine.arrow.plain_size import fixed_bytes, plain_bytes


@pytest.mark.parametrize(
    ("type_", "values", "expected"),
    [
        (pa.int64(), [1, None], 16),
        (pa.int32(), [1, 2], 8),
        (pa.bool_(), [True, False], 2),
        (pa.date32(), [1], 4),
        (pa.timestamp("us", "UTC"), [datetime(2026, 1, 1, tzinfo=UTC)], 8),
        (pa.decimal128(10, 2), [Decimal("1.00")], 16),
        (pa.string(), ["tally", None, ""], 12 + 5),
        (pa.large_string(), ["né"], 4 + 3),
        (pa.binary(), [b"mark"], 4 + 4),
        (pa.list_(pa.int64()), [[1, 2, 3], []], 32),
        (pa.struct([("a", pa.int8())]), [{"a": 1}], 16),
        (pa.string(), [], 0),
    ],
    ids=str,
)
def test_each_type_counts_what_the_measure_says(type_: pa.DataType, values: list[object], expected: int) -> None:
    assert plain_bytes(pa.table({"column": pa.array(values, type_)})) == expected


def test_a_slice_counts_its_own_rows_alone() -> None:
    rows = pa.table({"id": range(1000), "name": [f"n{number}" for number in range(1000)]})
    parts = [rows.slice(0, 17), rows.slice(17, 900), rows.slice(917)]
    assert sum(map(plain_bytes, parts)) == plain_bytes(rows) == plain_bytes(pa.concat_tables(parts))
    assert plain_bytes(rows.slice(990)) == 10 * fixed_bytes(rows.schema) + 10 * len("n990")
