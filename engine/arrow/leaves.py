"""Columns of a Parquet file: an Arrow field has one, or one for each of its parts."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa


def leaves(field: "pa.Field[Any]", parent: str = "") -> Iterator[tuple[str, pa.DataType]]:
    """Yield the Parquet path of a column, or of each part of a nested one, and its type."""
    path = f"{parent}{field.name}"
    parts = _parts(field.type, path)
    if parts is None:
        yield path, field.type
    else:
        for above, part in parts:
            yield from leaves(part, above)


def _parts(kind: pa.DataType, path: str) -> "list[tuple[str, pa.Field[Any]]] | None":
    """Yield the parts of a nested type, each with its path; Parquet's own nested types add the words in between."""
    match kind:
        case pa.StructType():
            return [(f"{path}.", kind.field(number)) for number in range(kind.num_fields)]
        case pa.MapType():
            pair = {"key": kind.key_field, "value": kind.item_field}
            return [(f"{path}.key_value.", part.with_name(name)) for name, part in pair.items()]
        case pa.ListType() | pa.LargeListType() | pa.FixedSizeListType():
            return [(f"{path}.list.", kind.value_field.with_name("element"))]
    return None
