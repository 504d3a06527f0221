"""Figures of a whole table that every engine can work out, and that hardly any lost, doubled or changed row escapes."""

import zlib
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Figures = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Checksum:
    """For each month: rows, then for each column the sum of its values and the count of its nulls.

    Of text the lengths are summed, of times the seconds since 1970.
    """

    months: dict[int, Figures]

    @property
    def rows(self) -> int:
        return sum(figures[0] for figures in self.months.values())

    def total(self, position: int) -> int:
        return sum(figures[position] for figures in self.months.values())

    @property
    def digest(self) -> str:
        """Of all figures."""
        return f"{zlib.crc32(repr(sorted(self.months.items())).encode()):08x}"


def sql_figures(schema: pa.Schema, *, seconds: str) -> list[str]:
    """The figures of a month as SQL, ``seconds`` being the dialect's function from a time to seconds since 1970."""
    figures = ["count(*)"]
    for field in schema:
        if pa.types.is_timestamp(field.type):
            value = f"cast({seconds}({field.name}) as bigint)"
        elif pa.types.is_string(field.type):
            value = f"length({field.name})"
        else:
            value = field.name
        figures += [f"sum({value})", f"count(*) - count({field.name})"]
    return figures


def of_arrow(table: pa.Table) -> Checksum:
    """The figures of rows in memory."""
    values: list[Any] = table["month"].to_pylist()
    return Checksum({month: _figures(table.filter(pc.field("month") == month)) for month in sorted(set(values))})


def _figures(rows: pa.Table) -> Figures:
    return reduce(lambda figures, column: (*figures, *_of_column(column)), rows.columns, (rows.num_rows,))


def _of_column(column: "pa.ChunkedArray[Any]") -> Figures:
    if pa.types.is_timestamp(column.type):
        values = column.cast(pa.timestamp("s", "UTC")).cast(pa.int64())
    elif pa.types.is_string(column.type):
        values = pc.utf8_length(column)
    else:
        values = column
    return int(pc.sum(values).as_py()), column.null_count
