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
    """What would come to one partition. None is what is not known."""

    files: int | None
    rows: int | None
    planned: tuple[PlannedFile, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedOutput:
    groups: tuple[IncomingGroup, ...] | None
    """None where nothing is known of the input."""
    bytes_a_row: float | None
    """In such files of the table, on average; None where they have no rows."""
    sizing: SizingSettings
    are_tasks_counted: bool = False
    """Whether the groups are of one task each."""
    sample: Sample | None = None
    is_guess: bool = False
    """Nothing that was written tells a plan of sizes what rows take."""
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
        """``files`` are such of the table's as tell what a row takes."""
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
        """What a plan of sizes goes by; None where there is to be none, or rows were not counted."""
        if not self.sizing.is_on or self.rows is None:
            return None
        rows = (IncomingRows(group.partition, group.rows or 0, group.plain_bytes) for group in self.groups or ())
        return WorkloadProfile(incoming=added_up(rows), sample=self.sample)

    @property
    def partitions(self) -> tuple[str, ...]:
        return tuple(sorted({group.partition for group in self.groups or ()}))

    @property
    def placeholders(self) -> tuple[DataFile, ...]:
        """A file for each partition, by which the scope of an overwrite is found."""
        return tuple(DataFile(partition, "to-come.parquet", 0, 0) for partition in self.partitions)

    @property
    def files(self) -> int | None:
        return self._file_count(self.groups) if self.plan is None else len(self.plan.files)

    @property
    def rows(self) -> int | None:
        return None if self.groups is None else _sum([group.rows for group in self.groups])

    @property
    def bytes(self) -> int | None:
        """Of the incoming rows alone."""
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
        """How good ``files`` and ``bytes`` are."""
        if self.groups is None:
            return "nothing is known of the input"
        if not self.groups:
            return "there are no rows to come"
        if self.plan is not None:
            return self._of_plan
        size = shown_bytes(self.sizing.max_file_bytes)
        if self.rows is None:
            unknown = ", so that no sizes are planned" if self.sizing.is_on else ""
            return f"one file a partition at least: its rows and tasks were not counted{unknown}"
        each = "task and partition" if self.are_tasks_counted else "partition at least"
        if self.bytes_a_row is None:
            return f"a file for each {each}; more where one has over {size}"
        counted = "each task has for each partition" if self.are_tasks_counted else "each partition gets"
        row = f"{self.bytes_a_row:,.1f} bytes a row, as in this table"
        return f"by the rows that {counted}, {row}, and {size} a file"

    @property
    def _of_plan(self) -> str:
        measured = "rows and bytes" if all(group.plain_bytes is not None for group in self.groups or ()) else "rows"
        guess = "; what they take is guessed, since no file and no sample tells" if self.is_guess else ""
        return f"by the {measured} of each partition, planned as the write would ({self.sizing.policy}){guess}"

    def _groups(self) -> dict[str, list[IncomingGroup]]:
        """By partition."""
        found: dict[str, list[IncomingGroup]] = {}
        for group in self.groups or ():
            found.setdefault(group.partition, []).append(group)
        return found

    def _file_count(self, groups: Sequence[IncomingGroup] | None) -> int | None:
        """As many as each task would fill, and one at least."""
        if groups is None:
            return None
        rows_a_file = math.inf if self.bytes_a_row is None else self.sizing.max_file_bytes / self.bytes_a_row
        return sum(max(1, math.ceil((group.rows or 0) / rows_a_file)) for group in groups)


def _sum(counts: Sequence[int | None]) -> int | None:
    """None where one of them is not known."""
    return None if None in counts else sum(filter(None, counts))
