"""What a table holds at a position of its commit log."""

from dataclasses import dataclass

import pyarrow as pa

from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.properties import TableProperties


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Exactly the committed files. It does not change; its files may go once a later commit has replaced them: at once
    with ``readers="directory"``, after ``retain_hours`` with ``readers="table"``.
    """

    url: str
    position: int
    schema: pa.Schema
    partition_by: tuple[str, ...]
    files: tuple[DataFile, ...]
    """Sorted by path, which is relative to ``url``."""

    @classmethod
    def of(cls, history: History, properties: TableProperties, *, url: str, position: int | None = None) -> "Snapshot":
        """What the table at the URL holds, or held, at a position of its history; left out, at the head."""
        position = history.head if position is None else position
        return cls(
            url=url,
            position=position,
            schema=properties.schema,
            partition_by=properties.partition_by,
            files=history.files_at(position),
        )

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)
