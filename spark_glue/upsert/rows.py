"""Rows of an upsert or delete in columns named by position, and which of these are the key's."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import BooleanType, DataType, StringType, StructType

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.jobs.request import WriteRequest
from tallymark.engine.tasks.changes import HASH
from tallymark.engine.tasks.merge import Action
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.upsert.keys import PLAIN_BYTES, key_of
from tallymark.spark_glue.numbered import column_name, numbered
from tallymark.spark_glue.profile import plain_bytes_column, static_values
from tallymark.spark_glue.row_hash import row_hash

_BINARY = "UTF8_BINARY"
"""The collation of Spark in which texts are equal and ordered by their bytes, as in Arrow; the only one before 4.0."""


class KeyedRows:
    """The columns of the table that the rows have, by name, and their names in the numbered DataFrame.

    Rows of a delete have only the key and the partition.
    """

    def __init__(self, df: DataFrame, ticket: WriteTicket, request: WriteRequest) -> None:
        key = key_of(ticket)
        self.ticket = ticket
        self.is_delete = request.mode == "delete"
        self._df = df
        self._delete_column = request.delete_column
        needed = {*key.record_key, *ticket.partition_by} if self.is_delete else {*ticket.schema.names}
        self._given = {name: column_name(place) for place, name in enumerate(df.columns) if name in needed}
        lacking = [name for name in ticket.partition_by if name not in self._given]
        added = {name: column_name(len(df.columns) + number) for number, name in enumerate(lacking)}
        self.columns = self._given | added
        self.key = [self.columns[name] for name in key.record_key]
        self.partition = [self.columns[name] for name in ticket.partition_by]
        self.order = [self.columns[name] for name in key.order_by if name in self.columns]
        self.is_anywhere = key.unique_in == "table" and bool(ticket.partition_by)
        """Whether the stored row of a key may be in another partition than that of the batch."""

    def keys(self) -> DataFrame:
        """Return the input of key tasks."""
        size = plain_bytes_column(self._df, self.ticket.schema, static_values(self.ticket.partition))
        names = [name for name in self._given if self.columns[name] in (*self.key, *self.partition)]
        columns = [self.columns[name] for name in names]
        found = numbered(self._df).select(*columns, row_hash(self._df), size)
        return found.toDF(*names, HASH, PLAIN_BYTES)

    def changes(self) -> DataFrame:
        """Return the rows with ``action`` and ``hash``, and all partition columns, as paths show them: an empty text is
        null.
        """
        kept = [name for name in self._given.values() if name not in self.partition]
        partition = [self._partition_value(name).alias(self.columns[name]) for name in self.ticket.partition_by]
        return numbered(self._df).select(
            *kept, *partition, self._action().cast("tinyint").alias("action"), row_hash(self._df).alias("hash")
        )

    def _action(self) -> Column:
        if self.is_delete:
            return f.lit(Action.FORCE_DELETE.value)
        if self._delete_column is None:
            return f.lit(Action.WRITE.value)
        flag = f.col(column_name(self._df.columns.index(self._delete_column)))
        return f.when(flag, Action.DELETE.value).otherwise(Action.WRITE.value)

    def _partition_value(self, name: str) -> Column:
        if name not in self._given:
            return f.lit(static_values(self.ticket.partition).get(name)).cast(
                spark_types([self.ticket.schema.field(name)])[0]
            )
        column = f.col(self._given[name])
        is_text = isinstance(self._df.schema[name].dataType, StringType)
        return f.when(column != "", column) if is_text else column


def spark_types(fields: "Iterable[pa.Field[Any]]") -> list[DataType]:
    """Return Spark's types of columns of a table."""
    return [field.dataType for field in from_arrow_schema(pa.schema(list(fields)), prefer_timestamp_ntz=True)]


def stored_columns(schema: StructType, delete_column: str | None) -> StructType:
    """Return the columns without the one that marks deletes. Raises InvalidRequest where that is missing or not
    boolean.
    """
    if delete_column is None:
        return schema
    marks = [field for field in schema if field.name == delete_column]
    if len(marks) != 1:
        known = ", ".join(map(repr, schema.names))
        raise InvalidRequest(
            f"delete_column={delete_column!r}: df has {len(marks) or 'no'} columns of that name; name one of {known}"
        )
    if not isinstance(marks[0].dataType, BooleanType):
        raise InvalidRequest(
            f"delete_column={delete_column!r} is {marks[0].dataType.simpleString()} in df; give a boolean column, "
            "which is true in rows that delete their key"
        )
    return StructType([field for field in schema if field is not marks[0]])


def check_changes(schema: StructType, request: WriteRequest, table: TableProperties | None) -> None:
    """Check what only the glue can detect of an upsert or delete, given the table if it exists.

    Raises:
        InvalidRequest: the table stores a column of the name of ``delete_column``, or texts by which rows are found,
            ordered or partitioned have a collation.
    """
    if table is not None and request.delete_column in table.schema.names:
        raise InvalidRequest(
            f"delete_column={request.delete_column!r} is a column of the table, and the one that marks deletes is not "
            "stored; rename it in df"
        )
    if table is not None and table.key is not None:
        names = {*table.key.record_key, *table.key.order_by, *table.partition_by}
    else:
        asked = (request.record_key or (), request.order_by or (), request.partition_by)
        names = {name for value in asked for name in ([value] if isinstance(value, str) else value)}
    for field in schema:
        collation = getattr(field.dataType, "collation", _BINARY)
        if field.name in names and collation != _BINARY:
            raise InvalidRequest(
                f"column {field.name!r} has the collation {collation}, and keys, partitions and their order are "
                f"compared by bytes; write collate({field.name}, '{_BINARY}')"
            )
