"""Parquet field ids: numbers by which a reader finds a table's columns in a file, whatever their names.

They are numbered from 1 as Iceberg numbers a new table: first the fields of a struct in their order, then those within
each of them. The element of a list has an id, too, and so have the key and the value of a map.
"""

from collections.abc import Iterator
from itertools import count
from typing import Any, cast

import pyarrow as pa

FIELD_ID = b"PARQUET:field_id"
"""Key in a field's metadata under which Arrow writes the id into a file's Parquet schema, and finds it there."""


def with_field_ids(schema: pa.Schema) -> tuple[pa.Schema, int]:
    """Return the schema with an id for each field, and the last id. Ids that it had are replaced."""
    ids = count(1)
    fields = _numbered(list(schema), ids)
    return pa.schema(fields, metadata=cast("dict[bytes | str, bytes | str] | None", schema.metadata)), next(ids) - 1


def field_id(field: "pa.Field[Any]") -> int:
    """Return the id of a field; 0 for one without, as of a table that an earlier release has created."""
    return int((field.metadata or {}).get(FIELD_ID, b"0"))


def _numbered(fields: "list[pa.Field[Any]]", ids: Iterator[int]) -> "list[pa.Field[Any]]":
    given = [field.with_metadata(_metadata(field, next(ids))) for field in fields]
    return [field.with_type(_numbered_within(field.type, ids)) for field in given]


def _metadata(field: "pa.Field[Any]", id_: int) -> dict[bytes | str, bytes | str]:
    return {**(field.metadata or {}), FIELD_ID: str(id_)}  # type: ignore[dict-item] # bytes are among both


def _numbered_within(kind: Any, ids: Iterator[int]) -> Any:
    match kind:
        case pa.StructType():
            return pa.struct(_numbered(list(kind), ids))
        case pa.MapType():
            key, item = _numbered([kind.key_field, kind.item_field], ids)
            return pa.map_(key, item, kind.keys_sorted)
        case pa.ListType():
            return pa.list_(*_numbered([kind.value_field], ids))
    return kind
