"""Required fields of structs: a null where the schema has none, or only the shadow of a null struct.

Engines differ in what stands below a null struct. Spark puts nulls there, also for fields that are required, and
Parquet's encoder takes those for values that are missing. They are no values at all: anything may stand there instead.
"""

from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as arrow_types

from tallymark.engine.errors import InvalidRequest


def settle_required(column: "pa.Array[Any]", name: str) -> "pa.Array[Any]":
    """The same values, with no null in a required field of any struct; ``column`` itself if no struct has such fields.

    Raises:
        InvalidRequest: a required field has a null although its struct is there.
    """
    return _settled(column, name, absent=None) if _has_required(column.type) else column


def _has_required(kind: pa.DataType) -> bool:
    fields = [kind.field(index) for index in range(kind.num_fields)]
    return any((arrow_types.is_struct(kind) and not field.nullable) or _has_required(field.type) for field in fields)


def _settled(array: Any, path: str, absent: "pa.Array[Any] | None") -> "pa.Array[Any]":
    """``absent`` tells the rows at which an outer struct is null: whatever stands there does not count."""
    kind = array.type
    if arrow_types.is_struct(kind):
        return _settled_struct(array, path, absent)
    if arrow_types.is_map(kind):
        return _remade(array, array.buffers()[0], _entries(array, _settled(array.items, f"{path}.value", None)))
    if arrow_types.is_list(kind) or arrow_types.is_large_list(kind):
        return _remade(array, array.buffers()[0], _settled(array.values, f"{path}.element", None))
    return cast("pa.Array[Any]", array)


def _settled_struct(array: Any, path: str, absent: "pa.Array[Any] | None") -> "pa.Array[Any]":
    nowhere = array.is_null() if absent is None else pc.or_(absent, array.is_null())
    fields = list(array.type)
    children = []
    for index, field in enumerate(fields):
        below = f"{path}.{field.name}"
        child = _settled(array.field(index), below, nowhere)
        children.append(child if field.nullable else _without_nulls(child, below, nowhere))
    return pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null())


def _without_nulls(array: Any, path: str, absent: "pa.Array[Any]") -> "pa.Array[Any]":
    missing = pc.sum(pc.and_not(array.is_null(), absent)).as_py()
    if missing:
        raise InvalidRequest(
            f"column {path!r} has {missing} nulls in structs that are there, and the table's schema allows none; "
            "drop those rows, or make the field nullable"
        )
    kind = array.type
    if arrow_types.is_struct(kind):
        return pa.StructArray.from_arrays([array.field(index) for index in range(kind.num_fields)], fields=list(kind))
    if arrow_types.is_map(kind):
        return _remade(array, None, _entries(array, array.items))
    return _remade(array, None, array.values if arrow_types.is_nested(kind) else None)


def _entries(array: Any, items: "pa.Array[Any]") -> "pa.Array[Any]":
    return pa.StructArray.from_arrays([array.keys, items], fields=[array.type.key_field, array.type.item_field])


def _remade(array: Any, validity: "pa.Buffer | None", child: "pa.Array[Any] | None") -> "pa.Array[Any]":
    """The same array with another validity and child; a list's or map's buffers end with its offsets."""
    own = array.buffers()[1:] if child is None else array.buffers()[1:2]
    children = None if child is None else [child]
    return pa.Array.from_buffers(array.type, len(array), [validity, *own], offset=array.offset, children=children)
