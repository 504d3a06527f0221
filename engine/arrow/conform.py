"""Conversion of a batch to the table's schema, or a clear refusal."""

from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as arrow_types

from tallymark.engine.arrow.casts import is_lossless, is_string
from tallymark.engine.errors import InvalidRequest


def settle_required(column: "pa.Array[Any]", name: str) -> "pa.Array[Any]":
    """Return the same values, with no null in a required field of any struct; ``column`` itself if no struct has such
    fields.

    Raises:
        InvalidRequest: a required field has a null although its struct is there.
    """
    return _settled(column, name, absent=None) if _has_required(column.type) else column


def _has_required(kind: pa.DataType) -> bool:
    fields = [kind.field(index) for index in range(kind.num_fields)]
    return any((arrow_types.is_struct(kind) and not field.nullable) or _has_required(field.type) for field in fields)


def _settled(array: Any, path: str, absent: "pa.Array[Any] | None") -> "pa.Array[Any]":
    """``absent`` marks the rows at which an outer struct is null: their values do not count."""
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
    """Return the same array with another validity and child; a list's or map's buffers end with its offsets."""
    own = array.buffers()[1:] if child is None else array.buffers()[1:2]
    children = None if child is None else [child]
    return pa.Array.from_buffers(array.type, len(array), [validity, *own], offset=array.offset, children=children)


def conform(batch: pa.RecordBatch, schema: pa.Schema, partition_by: tuple[str, ...] = ()) -> pa.RecordBatch:
    """Return the same rows in exactly this schema, columns matched by name.

    A type is cast where every value of it has an equal in the other: narrower to wider numbers, any string to any
    string, one timezone's label to another's. Times of a finer unit, which pandas makes of all times, are cast where no
    value of the batch loses precision. An empty string in a partition column becomes null: their paths are the same.

    Raises:
        InvalidRequest: a column is extra, missing, doubled, of a type that cannot be cast, or has a null where the
            schema allows none.
    """
    _check_names(batch.schema, schema)
    columns = [_column(batch.column(field.name), field) for field in schema]
    for name in partition_by:
        position = schema.get_field_index(name)
        columns[position] = _empty_to_null(columns[position])
    for field, column in zip(schema, columns, strict=True):
        if not field.nullable and column.null_count:
            raise InvalidRequest(
                f"column {field.name!r} has {column.null_count} nulls{_or_empty(field, partition_by)}, "
                f"and the table's schema allows none; drop those rows, or make the column nullable"
            )
    settled = [settle_required(column, field.name) for field, column in zip(schema, columns, strict=True)]
    return pa.RecordBatch.from_arrays(settled, schema=schema)


def _check_names(found: pa.Schema, wanted: pa.Schema) -> None:
    for name in wanted.names:
        count = len(found.get_all_field_indices(name))
        if count != 1:
            problem = f"stands {count} times in" if count else "is missing from"
            raise InvalidRequest(f"column {name!r} ({wanted.field(name).type}) {problem} a batch; give it once")
    for field in found:
        if field.name not in wanted.names:
            raise InvalidRequest(
                f"column {field.name!r} ({field.type}) of a batch is not in the table's schema; drop it from the batch"
            )


def _column(column: "pa.Array[Any]", field: "pa.Field[Any]") -> "pa.Array[Any]":
    if column.type.equals(field.type):
        return column
    reason = "that cast could change values"
    if is_lossless(column.type, field.type):
        try:
            return column.cast(field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            reason = str(error)
    raise InvalidRequest(
        f"column {field.name!r} is {column.type} in a batch and {field.type} in the table's schema ({reason}); "
        "cast it before writing"
    )


def _empty_to_null(column: "pa.Array[Any]") -> "pa.Array[Any]":
    if not is_string(column.type):
        return column
    is_empty = pc.equal(column, pa.scalar("", column.type))
    return pc.if_else(is_empty, pa.scalar(None, column.type), column) if pc.any(is_empty).as_py() else column


def _or_empty(field: "pa.Field[Any]", partition_by: tuple[str, ...]) -> str:
    return " or empty strings, which are null in a partition path" if field.name in partition_by else ""
