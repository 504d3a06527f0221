"""Record key of a table: the columns whose values identify a row, fixed when the table is created. Pure.

Owns: which columns may be a key or decide between two rows of one, and how far a key is unique. Does not own: how rows
are found by their key.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import pyarrow as pa
import pyarrow.types as arrow_types

from tallymark.engine.errors import InvalidRequest

UniqueIn = Literal["partition", "table"]

_KINDS: tuple[Callable[[pa.DataType], bool], ...] = (
    arrow_types.is_string,
    arrow_types.is_large_string,
    arrow_types.is_binary,
    arrow_types.is_large_binary,
    arrow_types.is_signed_integer,
    arrow_types.is_boolean,
    arrow_types.is_date32,
    arrow_types.is_timestamp,
    arrow_types.is_decimal128,
)
"""Types whose values Arrow, Parquet and Spark compare alike; floats differ in NaN and -0.0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableKey:
    record_key: tuple[str, ...]
    """Columns whose values together identify a row; none of them is null."""
    order_by: tuple[str, ...] = ()
    """Columns that decide between two rows of one key: the greater wins, null is the least."""
    unique_in: UniqueIn = "table"
    """Where a key occurs once: in each partition, or in the whole table."""

    def range_column(self, partition_by: Sequence[str]) -> str | None:
        """Return the column whose range is recorded of each file: the first that differs within a partition."""
        return next((name for name in self.record_key if name not in partition_by), None)

    def check(self, schema: pa.Schema) -> None:
        """Raise InvalidRequest where a table of this schema cannot have this key."""
        _check_columns(schema, "record_key", self.record_key)
        _check_columns(schema, "order_by", self.order_by)
        if both := [name for name in self.order_by if name in self.record_key]:
            raise InvalidRequest(
                f"order_by names {both[0]!r}, a column of record_key: it is equal in all rows of one key; leave it out"
            )
        if self.unique_in not in get_args(UniqueIn):
            raise InvalidRequest(f"unique_in={self.unique_in!r}: {_CHOICES}")


_CHOICES = (
    "say 'partition', where a row whose partition columns change is another row, and only its partition is looked up; "
    "or 'table', where such a row is deleted from its old partition, and all partitions are looked up"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRequest:
    """The key that a write specifies; None where it leaves that to the table. Raises InvalidRequest for invalid
    values.
    """

    record_key: str | Sequence[str] | None = None
    order_by: str | Sequence[str] | None = None
    unique_in: UniqueIn | None = None

    def __post_init__(self) -> None:
        for keyword in ("record_key", "order_by"):
            value = getattr(self, keyword)
            if value is not None and not (names := _names(keyword, value)):
                raise InvalidRequest(f"{keyword}={names!r}: name at least one column, or leave it out")
        if self.record_key is None and (self.order_by is not None or self.unique_in is not None):
            given = "order_by" if self.order_by is not None else "unique_in"
            raise InvalidRequest(
                f"{given} describes rows of one record_key; give record_key, too, or leave {given} out"
            )

    def of_new(self, schema: pa.Schema, partition_by: Sequence[str]) -> TableKey | None:
        """Return the key of a table that is to be created; None for one without. Raises InvalidRequest where it does
        not fit, or ``unique_in`` is left out and has to be decided.
        """
        if self.record_key is None:
            return None
        record_key = _names("record_key", self.record_key)
        is_open = any(column not in record_key for column in partition_by)
        if self.unique_in is None and is_open:
            raise InvalidRequest(
                f"record_key={list(record_key)} does not contain all of partition_by={list(partition_by)}, so "
                f"unique_in has to be decided: {_CHOICES}"
            )
        key = TableKey(
            record_key=record_key,
            order_by=() if self.order_by is None else _names("order_by", self.order_by),
            unique_in=self.unique_in or ("partition" if partition_by else "table"),
        )
        key.check(schema)
        return key

    def check_kept(self, key: TableKey | None) -> None:
        """Raise InvalidRequest where the table exists and was created with another key."""
        if self.record_key is None:
            return
        asked = {
            "record_key": _names("record_key", self.record_key),
            "order_by": None if self.order_by is None else _names("order_by", self.order_by),
            "unique_in": self.unique_in,
        }
        for keyword, value in asked.items():
            if value is not None and (key is None or value != getattr(key, keyword)):
                there = "without a record key" if key is None else f"with {keyword}={_shown(getattr(key, keyword))}"
                raise InvalidRequest(
                    f"{keyword}={_shown(value)}: the table was created {there}, which is fixed; leave {keyword} "
                    "out, or write a new table"
                )


def _names(keyword: str, value: object) -> tuple[str, ...]:
    names = (value,) if isinstance(value, str) else value
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InvalidRequest(f"{keyword}={value!r}: give a column's name, or a list of names such as ['country', 'id']")
    return tuple(names)


def _shown(value: tuple[str, ...] | str) -> str:
    return repr(value if isinstance(value, str) else list(value))


def _check_columns(schema: pa.Schema, keyword: str, names: Sequence[str]) -> None:
    for place, name in enumerate(names):
        if name in names[:place]:
            raise InvalidRequest(f"{keyword} names {name!r} twice; name it once")
        if len(schema.get_all_field_indices(name)) != 1:
            known = ", ".join(map(repr, schema.names))
            raise InvalidRequest(
                f"{keyword} names {name!r}, which is not a top-level column of the schema; these are {known}"
            )
        kind = schema.field(name).type
        if not any(is_kind(kind) for is_kind in _KINDS):
            raise InvalidRequest(
                f"{keyword} names {name!r}, which is {kind}; such a column is a string, binary, a signed integer, a "
                "bool, a date32, a timestamp or a decimal128: derive one from it, such as a decimal of a float"
            )
