"""Check of partition columns: their values must name a directory that every reader parses back."""

from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.types as arrow_types

from tallymark.engine.errors import InvalidRequest

_KINDS: tuple[Callable[[pa.DataType], bool], ...] = (
    arrow_types.is_string,
    arrow_types.is_large_string,
    arrow_types.is_signed_integer,
    arrow_types.is_boolean,
    arrow_types.is_date32,
    arrow_types.is_decimal128,
)


def check_partition_columns(schema: pa.Schema, partition_by: Sequence[str]) -> None:
    """Check that a table of this schema can be partitioned by these columns.

    Raises:
        InvalidRequest: names the column, the rule it breaks and the remedy.
    """
    for position, column in enumerate(partition_by):
        if column in partition_by[:position]:
            raise InvalidRequest(f"partition column {column!r} is named twice; name it once")
        _check_column(schema, column)
    if partition_by and len(partition_by) == len(schema):
        raise InvalidRequest(
            f"partition columns {', '.join(map(repr, partition_by))} are all there is; "
            "readers need a column that is not in the path: partition by fewer columns or add one"
        )


def _check_column(schema: pa.Schema, column: str) -> None:
    found = schema.get_all_field_indices(column)
    if not found:
        known = ", ".join(map(repr, schema.names))
        raise InvalidRequest(
            f"partition column {column!r} is not in the schema; top-level columns are {known} "
            "(a field inside a struct cannot partition: copy it into a column)"
        )
    if len(found) > 1:
        raise InvalidRequest(f"partition column {column!r} stands {len(found)} times in the schema; rename the others")
    if not column or column.startswith("."):
        raise InvalidRequest(f"partition column {column!r} would make a directory that readers skip; rename the column")
    kind = schema.field(column).type
    if not any(is_kind(kind) for is_kind in _KINDS):
        raise InvalidRequest(
            f"partition column {column!r} is {kind}; a partition column is a string, a signed integer, a bool, "
            f"a date32 or a decimal128: derive one from it, such as a date or a bucket number"
        )
