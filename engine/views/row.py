"""Row of a view: a file, and the positions of the commit log between which it is live."""

from dataclasses import dataclass

from tallymark.engine.timeline.entry import DataFile


@dataclass(frozen=True, slots=True)
class FileRow:
    file: DataFile
    added_at: int
    """The position of the entry that committed it."""
    removed_at: int = 0
    """The position of the entry that replaced it; 0 while none has."""

    def is_live(self, position: int) -> bool:
        """Return whether the table contained it when its log ended there."""
        return self.added_at <= position and not 0 < self.removed_at <= position
