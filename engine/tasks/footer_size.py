"""What a Parquet file's footer takes: of each column of each row group it tells the least and the greatest value."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tallymark.engine.arrow.leaves import leaves
from tallymark.engine.arrow.plain_size import is_text

COLUMN_BYTES = 100
"""Of a file for each column, beside its name: Parquet's schema and Arrow's. 70 to 95 were measured, of eight types."""

NAME_BYTES = 3
"""For each one of the name's: it is told by both schemas, by Arrow's in base 64."""

CHUNK_BYTES = 85
"""Of each column of a row group, beside its name, least and greatest value. 60 to 75 were measured in small files."""

TOLD_BYTES_MAX = 4096
"""A value beyond this is not told as the least or the greatest (Parquet's C++ library)."""


@dataclass(frozen=True, slots=True)
class FooterSize:
    """Of the files of one schema; about, and rather too much."""

    schema_bytes: int
    """Before any row."""
    of_any_rows: int
    """Of a row group, whatever its rows are."""
    _texts: tuple[int, ...]
    """Places of the columns whose values tell."""

    @classmethod
    def of(cls, schema: pa.Schema) -> "FooterSize":
        columns = [column for field in schema for column in leaves(field)]
        return cls(
            schema_bytes=sum(COLUMN_BYTES + NAME_BYTES * len(path) for path, _ in columns),
            of_any_rows=sum(CHUNK_BYTES + len(path) + _told_bytes(type_) for path, type_ in columns),
            _texts=tuple(place for place, field in enumerate(schema) if is_text(field.type)),
        )

    def of_rows(self, rows: pa.Table) -> int:
        """Of a row group of these; of a text in a nested column, as if it were as long as can be told."""
        return self.of_any_rows - 2 * sum(TOLD_BYTES_MAX - _longest(rows.column(place)) for place in self._texts)


def _told_bytes(type_: pa.DataType) -> int:
    """Of the least and the greatest value: of numbers in an older form, too."""
    if is_text(type_):
        return 2 * TOLD_BYTES_MAX
    if pa.types.is_nested(type_) or pa.types.is_null(type_):
        return 0  # of no values, or of a kind that Parquet does not take
    return 4 * max(1, type_.bit_width // 8)


def _longest(column: "pa.ChunkedArray[Any]") -> int:
    longest: int | None = pc.max(pc.binary_length(column)).as_py()
    return min(longest or 0, TOLD_BYTES_MAX)
