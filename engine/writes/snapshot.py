"""What a table holds at a position of its commit log."""

from dataclasses import dataclass

import pyarrow as pa

from tallymark.engine.timeline.entry import DataFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Exactly the committed files. It does not change; with ``readers="directory"`` its files may go."""

    url: str
    position: int
    schema: pa.Schema
    partition_by: tuple[str, ...]
    files: tuple[DataFile, ...]
    """Sorted by path, which is relative to ``url``."""

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)
