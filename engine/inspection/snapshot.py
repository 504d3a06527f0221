"""Snapshot of a table: its files at one position of the commit log."""

from dataclasses import dataclass

import pyarrow as pa

from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.timeline.properties import TableProperties


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Exactly the committed files. It does not change; its files may be deleted after a later commit has replaced them:
    at once with ``readers="directory"``, after ``retain_hours`` with ``readers="table"``.
    """

    url: str
    position: int
    schema: pa.Schema
    partition_by: tuple[str, ...]
    files: tuple[DataFile, ...]
    """Sorted by path, which is relative to ``url``."""

    @classmethod
    async def of(cls, handle: TableHandle, properties: TableProperties, position: int | None = None) -> "Snapshot":
        """Return the table's files at a position of its log as far as it was read, by default at its head."""
        position = handle.log.history.head if position is None else position
        return cls(
            url=handle.backend.url,
            position=position,
            schema=properties.schema,
            partition_by=properties.partition_by,
            files=await _files_at(handle, properties, position),
        )

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)


async def _files_at(handle: TableHandle, properties: TableProperties, position: int) -> tuple[DataFile, ...]:
    """Return the files by the view; below its floor by the log itself."""
    view = handle.view(properties)
    if position < view.floor:
        return (await handle.log.reach(0)).files_at(position)
    return tuple([file async for file in view.at(position).all_files()])
