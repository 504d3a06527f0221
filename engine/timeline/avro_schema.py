"""The Avro schema of a table, which decides what readers of the Hudi format see of its Parquet files.

Owns: which Arrow types and column names a table may have. A type is accepted if hudi-rs 0.5.0 reads it back with equal
values, a name if Avro can spell it. Does not own: which columns may be partition columns (``properties``).

Values come back equal after a cast to the written type: readers show int8 and int16 as int32, large strings as strings
and every timestamp in UTC. A timestamp without a time zone is described as one of UTC, because hudi-rs stops at Avro's
``local-timestamp-micros``; its digits stay.
"""

import json
import re
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.types as types

from tallymark.engine.errors import InvalidRequest

NESTING_MAX = 24
"""Levels of lists, maps and structs: hudi-rs reads 128 levels of JSON, of which a struct takes four."""

RESERVED_PREFIX = "_hoodie_"

Json = str | dict[str, object] | list[object]
Path = tuple[str, ...]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_PRIMITIVES: dict[pa.DataType, Json] = {
    pa.bool_(): "boolean",
    pa.int8(): "int",
    pa.int16(): "int",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.binary(): "bytes",
    pa.large_binary(): "bytes",
    pa.date32(): {"type": "int", "logicalType": "date"},
}


@lru_cache(maxsize=64)
def avro_schema(schema: pa.Schema, *, name: str) -> str:
    """Return the Avro record, as JSON text, for the table ``name``; the same schema gives the same text.

    Raises:
        InvalidRequest: a column that readers would lose or change; the message names its path, its type and a remedy.
    """
    if not len(schema):
        raise InvalidRequest("the schema has no columns; give at least one")
    for column in schema.names:
        if column.lower().startswith(RESERVED_PREFIX):
            raise InvalidRequest(f"column {column!r}: names in {RESERVED_PREFIX}* are Hudi's own; rename the column")
    table = re.sub(r"^(?=[0-9])|[^A-Za-z0-9_]", "_", name) or "_"
    return json.dumps(_Names("hoodie", table).record(list(schema), ()), separators=(",", ":"))


class _Names:
    """Writes types, and gives each named one (struct, decimal) the name of its path, so that no name is used twice."""

    def __init__(self, *prefix: str) -> None:
        self._prefix = prefix

    def record(self, fields: "list[pa.Field[Any]]", path: Path) -> Json:
        _check_names(fields, path)
        written = [self._field(field, (*path, field.name)) for field in fields]
        return {"type": "record", **self._named(path), "fields": written}

    def _field(self, field: "pa.Field[Any]", path: Path) -> dict[str, object]:
        written: dict[str, object] = {"name": field.name, "type": self._nullable(field, path)}
        return {**written, "default": None} if field.nullable else written

    def _nullable(self, field: "pa.Field[Any]", path: Path) -> Json:
        written = self._type(field.type, path)
        return ["null", written] if field.nullable else written

    def _type(self, type_: pa.DataType, path: Path) -> Json:
        if len(path) > NESTING_MAX + 1:
            raise InvalidRequest(f"column {path[0]!r} is nested deeper than {NESTING_MAX} levels; flatten it")
        if type_ in _PRIMITIVES:
            return _PRIMITIVES[type_]
        if types.is_timestamp(type_) and type_.unit == "us":
            return {"type": "long", "logicalType": "timestamp-micros"}
        if types.is_decimal128(type_) and 0 <= type_.scale <= type_.precision:
            return self._decimal(type_, path)
        return self._nested(type_, path)

    def _nested(self, type_: pa.DataType, path: Path) -> Json:
        if types.is_struct(type_) and type_.num_fields:
            return self.record(list(type_), path)
        if types.is_list(type_):
            return {"type": "array", "items": self._nullable(type_.value_field, (*path, "element"))}
        if types.is_map(type_) and type_.key_type in (pa.string(), pa.large_string()):
            return {"type": "map", "values": self._nullable(type_.item_field, (*path, "value"))}
        raise InvalidRequest(
            f"column {'.'.join(path)!r} is of type {type_}, which not every reader of the table can represent; "
            f"{_remedy(type_)}"
        )

    def _decimal(self, type_: pa.Decimal128Type, path: Path) -> Json:
        return {
            "type": "fixed",
            **self._named(path),
            "size": ((10**type_.precision - 1).bit_length() + 8) // 8,  # with a sign bit
            "logicalType": "decimal",
            "precision": type_.precision,
            "scale": type_.scale,
        }

    def _named(self, path: Path) -> dict[str, object]:
        parts = [*self._prefix, f"{self._prefix[-1]}_record", *path]
        return {"name": parts[-1], "namespace": ".".join(parts[:-1])}


def _check_names(fields: "list[pa.Field[Any]]", path: Path) -> None:
    seen: dict[str, str] = {}
    for name in (field.name for field in fields):
        column = ".".join((*path, name))
        if not _NAME.fullmatch(name):
            raise InvalidRequest(
                f"column {column!r}: a name is made of A-Z, a-z, 0-9 and _ and does not begin with a digit, or readers "
                "of the Hudi format cannot open the table; rename the column"
            )
        if name.lower() in seen:
            raise InvalidRequest(
                f"column {column!r} and {seen[name.lower()]!r} are one name to engines that ignore case; rename one"
            )
        seen[name.lower()] = column


def _remedy(type_: pa.DataType) -> str:
    """Return what to do about a refused type, as the end of a sentence."""
    if isinstance(type_, pa.BaseExtensionType):
        return f"cast it to its storage type, {type_.storage_type}"
    if types.is_timestamp(type_):
        zone = f", {type_.tz!r}" if type_.tz else ""
        return f"cast it to timestamp('us'{zone})"
    if types.is_dictionary(type_) or types.is_run_end_encoded(type_):
        return f"cast it to {type_.value_type}"
    if types.is_map(type_):
        return "cast its keys to string"
    return next((remedy for is_kind, remedy in _REMEDIES if is_kind(type_)), "cast it to a type of the Hudi format")


_REMEDIES = (
    (types.is_null, "give it a type, such as string"),
    (types.is_uint8, "cast it to int16"),
    (types.is_uint16, "cast it to int32"),
    (types.is_uint32, "cast it to int64"),
    (types.is_uint64, "cast it to decimal128(20, 0), or to int64 if no value is too large"),
    (types.is_float16, "cast it to float32"),
    (types.is_date64, "cast it to date32"),
    (types.is_time, "cast it to string, or to int64"),
    (types.is_duration, "cast it to int64"),
    (types.is_interval, "split it into integer columns"),
    (types.is_decimal, "cast it to decimal128 of at most 38 digits, with a scale between 0 and the precision"),
    (types.is_string_view, "cast it to string"),
    (types.is_binary_view, "cast it to binary"),
    (types.is_fixed_size_binary, "cast it to binary"),
    (types.is_large_list, "cast it to list"),
    (types.is_fixed_size_list, "cast it to list"),
    (types.is_list_view, "cast it to list"),
    (types.is_large_list_view, "cast it to list"),
    (types.is_struct, "give the struct at least one field, or drop the column"),
    (types.is_union, "use a struct with one nullable field for each member"),
)
