"""Specification of the table by a call: its properties if it is created, compared with those of an existing one."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import cast

import pyarrow as pa

from tallymark.engine.arrow.field_ids import with_field_ids
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.jobs.request import WriteRequest
from tallymark.engine.jobs.target import WriteTarget
from tallymark.engine.maintenance.retention import Retention
from tallymark.engine.partitions.columns import missing_columns
from tallymark.engine.partitions.static import prefix_columns
from tallymark.engine.timeline.entry import CHANGES
from tallymark.engine.timeline.log import new_nonce
from tallymark.engine.timeline.properties import TableProperties


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    name: str
    created: str
    """The instant of its creation, if it is created."""
    schema: pa.Schema
    """Columns of the input. Static columns may be missing."""
    request: WriteRequest
    retention: Retention

    def beside(self, found: TableProperties | None) -> TableProperties:
        """Return the properties that the call requests, given those of the existing table.

        Raises:
            InvalidRequest: they describe no valid table, or the request does not fit it. ``prepare`` compares the
                columns.
        """
        static = self.request.partition or {}
        if static:
            partition_by = found.partition_by if found else tuple(self.request.partition_by)
            prefix_columns(static, keyword="partition", partition_by=partition_by)
        schema = self.schema
        for field in missing_columns(schema, static, table=found.schema if found else None):
            schema = schema.append(field)
        wanted = TableProperties(
            name=self.name,
            partition_by=tuple(self.request.partition_by),
            schema=schema,
            created=self.created,
            id=new_nonce(),
        )
        WriteTarget.of(self.request, found or wanted)
        return wanted if found is not None else self._of_new(wanted)

    def _of_new(self, wanted: TableProperties) -> TableProperties:
        """Return the properties of a table that is to be created: with field ids, after its columns were checked."""
        if self.request.mode == "delete":
            raise InvalidRequest("mode='delete': there is no table to delete from; check the URL")
        schema, last_field_id = with_field_ids(wanted.schema)
        key = self.request.key.of_new(schema, wanted.partition_by)
        if key is None and self.request.is_keyed:
            raise InvalidRequest(
                f"mode={self.request.mode!r} needs a table with a record key: name the columns that identify a row in "
                "record_key"
            )
        if key is not None and self.retention.readers is None:
            raise InvalidRequest(
                "a table with a record_key is rewritten file by file, so readers has to be decided: say 'directory', "
                "where replaced files are deleted at once and scans in flight fail, or 'table', where each version of "
                "a rewritten file is kept for retain_hours, and readers go by the log or the Hudi timeline"
            )
        wanted = self.retention.of_new(wanted)
        features = (CHANGES,) if key is not None else ()
        if key is not None:
            schema = _required(schema, key.record_key)
        return replace(wanted, schema=schema, last_field_id=last_field_id, key=key, writer_features=features)


def _required(schema: pa.Schema, columns: Collection[str]) -> pa.Schema:
    """Return the schema with these columns not nullable: tasks refuse nulls there."""
    fields = [field.with_nullable(False) if field.name in columns else field for field in schema]
    return pa.schema(fields, cast("dict[bytes | str, bytes | str] | None", schema.metadata))
