"""Estimated output of a write, as far as its input rows are known. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tallymark.engine.jobs.result import shown_bytes
from tallymark.engine.planning.input_rows import IncomingGroup
from tallymark.engine.settings import SizingSettings
from tallymark.engine.sizing.plan import PlannedFile, SizingPlan
from tallymark.engine.sizing.profile import IncomingRows, Sample, WorkloadProfile, added_up
from tallymark.engine.timeline.entry import DataFile


@dataclass(frozen=True, slots=True)
class EstimatedFiles:
    """Files and rows to add to one partition; None where unknown."""

    files: int | None
    rows: int | None
    planned: tuple[PlannedFile, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedOutput:
    groups: tuple[IncomingGroup, ...] | None
    """None for an unknown input."""
    bytes_a_row: float | None
    """Mean in the table's reference files; None where they have no rows."""
    sizing: SizingSettings
    are_tasks_counted: bool = False
    """Whether each group belongs to one task."""
    sample: Sample | None = None
    is_guess: bool = False
    """Neither a file nor a sample shows the planner what rows take."""
    plan: SizingPlan | None = None
    """None where no sizes are planned, or the rows are not known."""

    @classmethod
    def of(
        cls,
        groups: Sequence[IncomingGroup] | None,
        files: Sequence[DataFile],
        *,
        sizing: SizingSettings,
        are_tasks_counted: bool = False,
        sample: Sample | None = None,
    ) -> "EstimatedOutput":
        """Return the estimate; ``files`` are the table's reference files, which show what a row takes."""
        rows = sum(file.rows for file in files)
        return cls(
            groups=None if groups is None else tuple(groups),
            bytes_a_row=sum(file.bytes for file in files) / rows if rows else None,
            sizing=sizing,
            are_tasks_counted=are_tasks_counted,
            sample=sample,
        )

    @property
    def profile(self) -> WorkloadProfile | None:
        """The input of the size planner; None where sizing is off, or rows were not counted."""
        if not self.sizing.is_on or self.rows is None:
            return None
        rows = (IncomingRows(group.partition, group.rows or 0, group.plain_bytes) for group in self.groups or ())
        return WorkloadProfile(incoming=added_up(rows), sample=self.sample)

    @property
    def partitions(self) -> tuple[str, ...]:
        return tuple(sorted({group.partition for group in self.groups or ()}))

    @property
    def placeholders(self) -> tuple[DataFile, ...]:
        """One file per partition, from which the scope of an overwrite is computed."""
        return tuple(DataFile(partition, "placeholder.parquet", 0, 0) for partition in self.partitions)

    @property
    def files(self) -> int | None:
        return self._file_count(self.groups) if self.plan is None else len(self.plan.files)

    @property
    def rows(self) -> int | None:
        return None if self.groups is None else _sum([group.rows for group in self.groups])

    @property
    def bytes(self) -> int | None:
        """Size of the incoming rows, without rewritten ones."""
        if self.plan is not None:
            return self.plan.inserted_bytes
        rows = self.rows
        return None if rows is None or self.bytes_a_row is None else round(rows * self.bytes_a_row)

    def by_partition(self) -> dict[str, EstimatedFiles]:
        if self.plan is None:
            return {
                partition: EstimatedFiles(self._file_count(of), _sum([group.rows for group in of]))
                for partition, of in self._groups().items()
            }
        planned: dict[str, list[PlannedFile]] = {partition: [] for partition in self.partitions}
        for file in self.plan.files:
            planned[file.partition].append(file)
        return {
            partition: EstimatedFiles(len(files), sum(file.rows for file in files), tuple(files))
            for partition, files in planned.items()
        }

    @property
    def estimate(self) -> str:
        """How exact ``files`` and ``bytes`` are."""
        if self.groups is None:
            return "unknown: the input was not described"
        if not self.groups:
            return "the input has no rows"
        if self.plan is not None:
            return self._of_plan
        size = shown_bytes(self.sizing.max_file_bytes)
        if self.rows is None:
            unknown = "; without them no sizes are planned" if self.sizing.is_on else ""
            return f"at least one file per partition: rows and tasks were not counted{unknown}"
        each = "one file per task and partition" if self.are_tasks_counted else "at least one file per partition"
        if self.bytes_a_row is None:
            return f"{each}; more where one exceeds {size}"
        counted = "rows per task and partition" if self.are_tasks_counted else "rows per partition"
        return f"from {counted}, {self.bytes_a_row:,.1f} bytes per row as in this table, {size} per file"

    @property
    def _of_plan(self) -> str:
        measured = "rows and bytes" if all(group.plain_bytes is not None for group in self.groups or ()) else "rows"
        guess = "; bytes per row are guessed, for lack of files and of a sample" if self.is_guess else ""
        return f"from {measured} per partition, planned as the write would ({self.sizing.policy}){guess}"

    def _groups(self) -> dict[str, list[IncomingGroup]]:
        """Return the groups by partition."""
        found: dict[str, list[IncomingGroup]] = {}
        for group in self.groups or ():
            found.setdefault(group.partition, []).append(group)
        return found

    def _file_count(self, groups: Sequence[IncomingGroup] | None) -> int | None:
        """Return the number of files that the groups would fill, at least one per group."""
        if groups is None:
            return None
        rows_a_file = math.inf if self.bytes_a_row is None else self.sizing.max_file_bytes / self.bytes_a_row
        return sum(max(1, math.ceil((group.rows or 0) / rows_a_file)) for group in groups)


def _sum(counts: Sequence[int | None]) -> int | None:
    """Return the sum, None if one of the counts is None."""
    return None if None in counts else sum(filter(None, counts))
