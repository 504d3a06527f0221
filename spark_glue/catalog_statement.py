"""SQL statements that register partitions in Spark's catalog: text in, text out."""

import re
from collections.abc import Iterator, Sequence
from urllib.parse import unquote

from pyspark.sql.types import StructType

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.partitions.path import NULL_PARTITION

PARTITIONS_PER_STATEMENT = 500
"""Partitions in one ALTER TABLE: about 100 KB of SQL, parsed in tens of milliseconds. Spark itself sends them to the
metastore in batches of ``spark.sql.addPartitionInBatch.size`` (100).
"""

PartitionValues = tuple[str | None, ...]
"""The values of one partition, in the order of its columns and as text; None for null."""

_NAME_PART = r"(\w+|`(?:[^`]|``)+`)"
_NAME = re.compile(rf"{_NAME_PART}(?:\.{_NAME_PART})?(?:\.{_NAME_PART})?", flags=re.ASCII)


def quoted_name(name: str) -> str:
    """Return a table's name, part by part in backticks. Raises InvalidRequest for a text that is not a table name."""
    match = _NAME.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        raise InvalidRequest(
            f"catalog_table={name!r} is not the name of a table; say 'database.table', with odd parts in backticks"
        )
    return ".".join(part if part[0] == "`" else quoted(part) for part in match.groups() if part)


def quoted(identifier: str) -> str:
    return "`" + identifier.replace("`", "``") + "`"


def literal(text: str) -> str:
    """Return a literal that Spark's parser reads back, for any text: a ``$`` would start a variable, which it
    substitutes.
    """
    return "'" + "".join(char if _is_plain(char) else f"\\u{ord(char):04x}" for char in text) + "'"


def _is_plain(char: str) -> bool:
    return char not in "'\\$" and (char.isprintable() or ord(char) > 0xFFFF)


def partition_values(path: str) -> PartitionValues:
    """Return the values of a partition path such as ``month=1/name=a%2Fb``, ours or from ``SHOW PARTITIONS``."""
    values = [unquote(segment.partition("=")[2]) for segment in path.split("/")]
    return tuple(None if value == NULL_PARTITION else value for value in values)


def add_statements(table: str, columns: Sequence[str], location: str, paths: Sequence[str]) -> Iterator[str]:
    """Yield ALTER TABLE ... ADD for partitions at their paths below the location; existing ones remain as they are."""
    specs = [f"PARTITION {_spec(columns, path)} LOCATION {literal(f'{location}/{path}')}" for path in paths]
    for batch in _batches(specs):
        yield f"ALTER TABLE {table} ADD IF NOT EXISTS {' '.join(batch)}"


def drop_statements(table: str, columns: Sequence[str], paths: Sequence[str]) -> Iterator[str]:
    """Yield ALTER TABLE ... DROP for partitions; for an external table it removes nothing from storage."""
    for batch in _batches([f"PARTITION {_spec(columns, path)}" for path in paths]):
        yield f"ALTER TABLE {table} DROP IF EXISTS {', '.join(batch)}"


def create_statement(table: str, schema: StructType, partition_by: Sequence[str], location: str) -> str:
    """Return the statement that creates the catalog table which ``write`` requires."""
    columns = ", ".join(f"{quoted(column.name)} {column.dataType.simpleString()}" for column in schema)
    partitioned = f" PARTITIONED BY ({', '.join(map(quoted, partition_by))})" if partition_by else ""
    return f"CREATE TABLE {table} ({columns}) USING parquet{partitioned} LOCATION {literal(location)}"


def _spec(columns: Sequence[str], path: str) -> str:
    values = ["null" if value is None else literal(value) for value in partition_values(path)]
    return f"({', '.join(f'{quoted(column)}={value}' for column, value in zip(columns, values, strict=True))})"


def _batches(clauses: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(clauses), PARTITIONS_PER_STATEMENT):
        yield clauses[start : start + PARTITIONS_PER_STATEMENT]
