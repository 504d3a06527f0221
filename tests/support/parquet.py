"""Parquet files of tests: their rows, read from bytes, and the field ids of a schema or a file."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tallymark.engine.arrow.field_ids import FIELD_ID


def read_bytes(data: bytes) -> pa.Table:
    """Return the rows of a small file, on this thread. ``read_table`` takes ten times as long: it scans in threads."""
    return pq.ParquetFile(pa.BufferReader(data)).read(use_threads=False)


def ids_of(schema: pa.Schema) -> dict[str, int]:
    """The ids of all fields, nested ones, too; -1 where there is none, as in a Parquet file."""
    return {path: id_ for field in schema for path, id_ in _ids(field, field.name)}


def _ids(field: "pa.Field[Any]", path: str) -> Iterator[tuple[str, int]]:
    yield path, int((field.metadata or {}).get(FIELD_ID, -1))
    match field.type:
        case pa.MapType() as kind:
            parts = {"key": kind.key_field, "value": kind.item_field}
        case pa.ListType() as kind:
            parts = {"element": kind.value_field}
        case pa.StructType() as kind:
            parts = {part.name: part for part in kind}
        case _:
            return
    for name, part in parts.items():
        yield from _ids(part, f"{path}.{name}")
