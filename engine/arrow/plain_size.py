"""Size of rows before they are encoded, in a measure that a query engine can compute, too, without Arrow.

A text or binary column counts the bytes of its values, every other column a fixed number per row, about the size of a
value of its type. The files of a partition show the ratio of encoded bytes to these.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

NESTED_BYTES = 16
"""Size of a value of a nested column, whatever its parts."""

_IS_TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)


def plain_bytes(rows: pa.Table | pa.RecordBatch) -> int:
    """Return the plain size of the rows. A null counts as any other value of a fixed width, or as an empty text."""
    return rows.num_rows * fixed_bytes(rows.schema) + sum(map(_text_bytes, filter(_is_text_column, rows.columns)))


def fixed_bytes(schema: pa.Schema) -> int:
    """Return the fixed size of every row."""
    return sum(_fixed(field.type) for field in schema)


def is_text(type_: pa.DataType) -> bool:
    """Return whether values of this type also count by their bytes."""
    return any(is_one(type_) for is_one in _IS_TEXT)


def _is_text_column(column: "pa.Array[Any] | pa.ChunkedArray[Any]") -> bool:
    return is_text(column.type)


def _fixed(type_: pa.DataType) -> int:
    if is_text(type_):
        return 4  # its length
    if pa.types.is_nested(type_) or pa.types.is_null(type_):
        return NESTED_BYTES
    return max(1, type_.bit_width // 8)


def _text_bytes(column: "pa.Array[Any] | pa.ChunkedArray[Any]") -> int:
    total: int | None = pc.sum(pc.binary_length(column)).as_py()  # type: ignore[arg-type] # of any of _IS_TEXT
    return total or 0
