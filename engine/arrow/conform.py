"""A batch in the table's schema, or a clear refusal."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tallymark.engine.arrow.casts import is_lossless, is_string
from tallymark.engine.arrow.required_fields import settle_required
from tallymark.engine.errors import InvalidRequest


def conform(batch: pa.RecordBatch, schema: pa.Schema, partition_by: tuple[str, ...] = ()) -> pa.RecordBatch:
    """The same rows in exactly this schema, columns matched by name.

    A type is cast where every value of it has an equal in the other: narrower to wider numbers, any string to any
    string, one timezone's label to another's. Times of a finer unit, which pandas makes of all times, are cast where
    no value of the batch loses anything. An empty string in a partition column becomes null: in a path they are one.

    Raises:
        InvalidRequest: a column is extra, missing, doubled, of a type that cannot be cast, or has a null where the
            schema has none.
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
