"""Change of one partition by one log entry."""

from collections.abc import Iterator
from dataclasses import dataclass

from tallymark.engine.timeline.entry import DataFile, LogEntry
from tallymark.engine.views.block import pack_rows
from tallymark.engine.views.row import FileRow


@dataclass(frozen=True, slots=True)
class Change:
    partition: str
    position: int
    added: tuple[DataFile, ...]
    removed: tuple[str, ...]
    """Names of removed files."""

    def rows(self) -> bytes:
        """Rows of added files."""
        return pack_rows(FileRow(file, self.position) for file in self.added)


def changes_of(position: int, entry: LogEntry) -> Iterator[Change]:
    """Yield the changes by partition, unordered. Only a commit changes anything."""
    if entry.kind != "commit":
        return
    added: dict[str, list[DataFile]] = {}
    removed: dict[str, list[str]] = {}
    for file in entry.added:
        added.setdefault(file.partition, []).append(file)
    for file in entry.removed:
        removed.setdefault(file.partition, []).append(file.name)
    for partition in added | removed:
        yield Change(partition, position, tuple(added.get(partition, ())), tuple(removed.get(partition, ())))
