"""What a write would add, as far as the input's rows are known. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.writes.incoming import IncomingGroup
from tallymark.engine.writes.result import shown_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Coming:
    groups: tuple[IncomingGroup, ...] | None
    """None where nothing is known of the input."""
    bytes_a_row: float | None
    """In this table, on average; None while it has no rows."""
    max_file_bytes: int

    @classmethod
    def of(cls, groups: Sequence[IncomingGroup] | None, files: Sequence[DataFile], *, max_file_bytes: int) -> "Coming":
        """``files`` are the table's, which tell what a row takes."""
        rows = sum(file.rows for file in files)
        return cls(
            groups=None if groups is None else tuple(groups),
            bytes_a_row=sum(file.bytes for file in files) / rows if rows else None,
            max_file_bytes=max_file_bytes,
        )

    @property
    def partitions(self) -> tuple[str, ...]:
        return tuple(sorted({group.partition for group in self.groups or ()}))

    @property
    def stand_ins(self) -> tuple[DataFile, ...]:
        """A file for each partition, by which the scope of an overwrite is found."""
        return tuple(DataFile(partition, "to-come.parquet", 0, 0) for partition in self.partitions)

    @property
    def files(self) -> int | None:
        return self._file_count(self.groups)

    @property
    def rows(self) -> int | None:
        return _row_count(self.groups)

    @property
    def bytes(self) -> int | None:
        rows = self.rows
        return None if rows is None or self.bytes_a_row is None else round(rows * self.bytes_a_row)

    def by_partition(self) -> dict[str, tuple[int | None, int | None]]:
        """Files and rows to come."""
        groups: dict[str, list[IncomingGroup]] = {}
        for group in self.groups or ():
            groups.setdefault(group.partition, []).append(group)
        return {partition: (self._file_count(of), _row_count(of)) for partition, of in groups.items()}

    @property
    def estimate(self) -> str:
        """How good ``files`` and ``bytes`` are."""
        if self.groups is None:
            return "nothing is known of the input"
        if not self.groups:
            return "there are no rows to come"
        if self.rows is None:
            return "one file a partition at least: its rows and tasks were not counted"
        size = shown_bytes(self.max_file_bytes)
        if self.bytes_a_row is None:
            return f"a file for each task and partition; more where one has over {size}"
        row = f"{self.bytes_a_row:,.1f} bytes a row, as in this table"
        return f"by the rows that each task has for each partition, {row}, and {size} a file"

    def _file_count(self, groups: Sequence[IncomingGroup] | None) -> int | None:
        """As many as each task would fill, and one at least."""
        if groups is None:
            return None
        rows_a_file = math.inf if self.bytes_a_row is None else self.max_file_bytes / self.bytes_a_row
        return sum(max(1, math.ceil((group.rows or 0) / rows_a_file)) for group in groups)


def _row_count(groups: Sequence[IncomingGroup] | None) -> int | None:
    counts = [group.rows for group in groups or ()]
    return None if groups is None or None in counts else sum(filter(None, counts))
