"""Static partition of a call, values of the first partition columns: ``{"year": 2013}`` is that part of the table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from numbers import Integral
from typing import Any, cast

import pyarrow as pa
import pyarrow.types as arrow_types

from tallymark.engine.arrow.casts import is_string
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.partitions.path import PartitionValue, partition_path
from tallymark.engine.timeline.scope import is_below


@dataclass(frozen=True, slots=True)
class StaticPartition:
    """Made by ``of``, for one table."""

    columns: tuple[str, ...]
    values: tuple[PartitionValue, ...]
    """As rows of the table contain them."""

    @classmethod
    def of(
        cls, given: Mapping[str, object], *, keyword: str, schema: pa.Schema, partition_by: Sequence[str]
    ) -> "StaticPartition":
        """Return the partition that a call named in its keyword ``keyword``, for a table of this schema.

        Raises:
            InvalidRequest: the columns are not the first that the table is partitioned by, a value is of another
                type than its column's or does not fit into it, or no path can contain it.
        """
        columns = prefix_columns(given, keyword=keyword, partition_by=partition_by)
        given_text = f"{keyword}={dict(given)!r}"
        partition = cls(
            columns, tuple(_row_value(given[column], schema.field(column), given_text) for column in columns)
        )
        partition_path(columns, partition.values)
        return partition

    @property
    def path(self) -> str:
        """The partition path of its rows or, where columns are left open, the common prefix of their paths."""
        return partition_path(self.columns, self.values)

    def contains(self, partition: str) -> bool:
        """Return whether a partition path is in this part of the table."""
        return is_below(partition, self.path)

    def __str__(self) -> str:
        return repr(dict(zip(self.columns, self.values, strict=True)))


def prefix_columns(given: Mapping[str, object], *, keyword: str, partition_by: Sequence[str]) -> tuple[str, ...]:
    """Return the named columns in the table's order.

    Raises InvalidRequest unless they are the first of ``partition_by``.
    """
    given_text = f"{keyword}={dict(given)!r}"
    if not partition_by:
        raise InvalidRequest(f"{given_text}: the table is not partitioned; leave {keyword} out, or give partition_by")
    unknown = [name for name in given if name not in partition_by]
    if unknown:
        raise InvalidRequest(
            f"{given_text}: {unknown[0]!r} is not a partition column; the table is partitioned by {list(partition_by)}"
        )
    columns = tuple(partition_by[: len(given)])
    left_out = [name for name in columns if name not in given]
    if left_out:
        raise InvalidRequest(
            f"{given_text} leaves out {left_out[0]!r}; the table is partitioned by {list(partition_by)}: name the "
            "first of these, one or more, without a gap"
        )
    return columns


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of partition columns, and the values that a call may give for them."""

    is_kind: Callable[[pa.DataType], bool]
    takes: tuple[type, ...]
    refuses: tuple[type, ...]
    """Subclasses of these with another meaning."""
    word: str


_KINDS = (
    _Kind(is_string, (str,), (), "a str"),
    _Kind(arrow_types.is_integer, (Integral,), (bool,), "an int"),
    _Kind(arrow_types.is_boolean, (bool,), (), "a bool"),
    _Kind(arrow_types.is_date32, (date,), (datetime,), "a datetime.date"),
    _Kind(arrow_types.is_decimal, (Decimal, Integral), (bool,), "a decimal.Decimal"),
)


def _row_value(value: object, field: "pa.Field[Any]", given_text: str) -> PartitionValue:
    """Return the value as a row of the table contains it: a decimal with its column's scale, null for an empty
    string.
    """
    of = f"{given_text}: column {field.name!r} is {field.type}"
    if value is not None:
        _check_type(value, field.type, of)
    row = None if value is None or value == "" else _fitting(value, field.type, of)
    if row is None and not field.nullable:
        raise InvalidRequest(f"{of} and takes no null, which {value!r} is in a partition path; give another value")
    return cast("PartitionValue", row)


def _check_type(value: object, type_: pa.DataType, of: str) -> None:
    kind = next(kind for kind in _KINDS if kind.is_kind(type_))
    if not isinstance(value, kind.takes) or isinstance(value, kind.refuses):
        raise InvalidRequest(f"{of}, and {value!r} is a {type(value).__name__}; give {kind.word}")


def _fitting(value: object, type_: pa.DataType, of: str) -> object:
    try:
        return pa.scalar(value, type_).as_py()
    except (ValueError, OverflowError, TypeError) as error:
        raise InvalidRequest(f"{of}, which cannot hold {value!r} ({error}); give another value") from error
