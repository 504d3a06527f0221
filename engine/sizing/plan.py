"""Plan of file sizes: the files that a write is to leave, as one value."""

from dataclasses import dataclass

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.timeline.entry import DataFile

NEW_FILES_MAX = 1_000_000
"""Maximum number per partition. The largest known commits have some hundred thousand files in all; beyond, a count was
mistyped, and the plan would take all memory before it could be shown.
"""


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file to be written."""

    partition: str
    rows: int
    """Incoming rows; none where a file only takes updates."""
    bytes: int
    """Expected size, including the rows of the file it fills."""
    fill: DataFile | None = None
    """The file whose rows it takes over, before the incoming ones; None for a file of new rows alone."""
    updates: int = 0
    """Of the rows that it takes over, those that are updated."""


def check_new_files(partition: str, rows: int, count: int) -> None:
    """Raise InvalidRequest where the rows of a partition would make more files than a plan can hold."""
    if count > NEW_FILES_MAX:
        raise InvalidRequest(
            f"partition {partition!r}: its {rows:,} rows would make {count:,} files, and a plan has {NEW_FILES_MAX:,} "
            "new ones of a partition at most. Check the count of rows; or raise max_file_bytes or insert_split_rows."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingPlan:
    """Advice: a task with other rows than those planned for writes them nevertheless."""

    files: tuple[PlannedFile, ...]
    """Sorted by partition; within one, those that take updates come first, then those that fill."""

    @property
    def rewritten_bytes(self) -> int:
        """Size of the files that are filled or updated."""
        return sum(file.bytes for file in self.fills)

    @property
    def bytes(self) -> int:
        """Expected size of the files."""
        return sum(file.bytes for file in self.files)

    @property
    def inserted_bytes(self) -> int:
        """Expected size of the incoming rows and of what updates add, which may be negative."""
        return self.bytes - self.rewritten_bytes

    @property
    def fills(self) -> tuple[DataFile, ...]:
        """The files that are filled or updated."""
        return tuple(file.fill for file in self.files if file.fill is not None)

    @property
    def changed_rows(self) -> int:
        """Rows of these files that are updated or deleted."""
        return sum(file.updates for file in self.files)

    @property
    def rewritten_per_byte(self) -> float:
        """Bytes rewritten per byte of the input, a changed row as a mean one of its file; 0 without an input."""
        filled = ((file, file.fill) for file in self.files if file.fill is not None)
        updated = sum(file.updates * fill.bytes / max(1, fill.rows) for file, fill in filled)
        given = max(0, self.inserted_bytes) + updated
        return self.rewritten_bytes / given if given else 0.0
