"""Planner of a dry run: it reads the log, and uses the input's row counts where they are known.

The code of jobs decides which files are removed (``jobs.target``, ``jobs.base``). Nothing is written or reserved, so
another write may commit first.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.jobs.base import WriteBase
from tallymark.engine.jobs.file_plan import reference_files, sized
from tallymark.engine.jobs.prepare import find_table
from tallymark.engine.jobs.result import shown_bytes
from tallymark.engine.jobs.table_spec import TableSpec
from tallymark.engine.jobs.target import WriteTarget
from tallymark.engine.jobs.txn import committed_write, declared
from tallymark.engine.planning.input_rows import CountedRows, Incoming, IncomingGroup, incoming_groups
from tallymark.engine.planning.write_plan import PlannedPartition, WritePlan
from tallymark.engine.setting_checks import check_settings
from tallymark.engine.settings import NO_SIZING, SizingSettings
from tallymark.engine.sizing.plan import PlannedFile, SizingPlan
from tallymark.engine.sizing.profile import FileUpdates, IncomingRows, Sample, WorkloadProfile, added_up
from tallymark.engine.timeline.conflict import check_conflicts
from tallymark.engine.timeline.entry import DataFile, LogEntry
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.timeline.scope import Scope
from tallymark.engine.views.view import ViewAt


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
    updates: tuple[FileUpdates, ...] = ()
    """Of a write by key: the files whose rows it changes."""
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
        updates: tuple[FileUpdates, ...] = (),
    ) -> "EstimatedOutput":
        """Return the estimate; ``files`` are the table's reference files, which show what a row takes."""
        rows = sum(file.rows for file in files)
        return cls(
            groups=None if groups is None else tuple(groups),
            bytes_a_row=sum(file.bytes for file in files) / rows if rows else None,
            sizing=sizing,
            are_tasks_counted=are_tasks_counted,
            sample=sample,
            updates=updates,
        )

    @property
    def profile(self) -> WorkloadProfile | None:
        """The input of the size planner; None where sizing is off and no rows are updated, or rows were not counted."""
        if (not self.sizing.is_on and not self.updates) or self.rows is None:
            return None
        rows = (IncomingRows(group.partition, group.rows or 0, group.plain_bytes) for group in self.groups or ())
        return WorkloadProfile(incoming=added_up(rows), updates=self.updates, sample=self.sample)

    @property
    def partitions(self) -> tuple[str, ...]:
        changed = {updates.file.partition for updates in self.updates}
        return tuple(sorted({group.partition for group in self.groups or ()} | changed))

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
        if not self.groups and not self.updates:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Foresight:
    """Inputs of a plan beside the table."""

    incoming: Incoming | None
    """None for an unknown input."""
    sizing: SizingSettings

    def __post_init__(self) -> None:
        check_settings("sizing", self.sizing, SizingSettings)


_NOTHING = EstimatedOutput(groups=(), bytes_a_row=None, sizing=NO_SIZING)


async def plan_write(handle: TableHandle, wanted: TableSpec, foresight: Foresight) -> WritePlan:
    """Return the plan.

    Raises:
        InvalidRequest: as the write would before its tasks run, and as a task would for counted rows; it is a dynamic
            overwrite with an unknown input, a write by key without the profile that lookups give, or a delete by
            ``where``.
        ConflictError: files that were read at ``base`` have been replaced since.
    """
    found = await find_table(handle, wanted)
    properties = found or wanted.beside(None)
    history = await handle.log.refresh()
    target = WriteTarget.of(wanted.request, properties)
    view = handle.view(properties)
    at, base = view.at(history.head), WriteBase.of(handle.log, wanted.request.base, lambda: view)
    committed = await committed_write(handle.log, wanted.request.txn, declared(target))
    if committed is None and wanted.request.where is not None:
        raise InvalidRequest("where=...: call Table.plan_delete, which looks the rows up")
    is_profiled = isinstance(foresight.incoming, WorkloadProfile)
    if committed is None and wanted.request.is_keyed and found is not None and not is_profiled:
        raise InvalidRequest(
            f"mode={wanted.request.mode!r}: the files that are rewritten are known only once the keys of the rows are "
            "looked up in them; give as incoming what WriteJob.profile returns, or call tallymark.plan(df, url, ...)"
        )
    estimated = await _estimated(target, properties, base.at or at, foresight) if committed is None else _NOTHING
    if (profile := estimated.profile) is not None:
        files = await reference_files(at, estimated.partitions)
        planned = await sized(handle, files, profile, foresight.sizing, is_overwrite=target.is_overwrite)
        has_estimate = estimated.sample is not None or files
        is_guess = foresight.sizing.policy == "balanced" and not has_estimate
        estimated = replace(estimated, plan=planned, is_guess=is_guess)
    scope = target.scope(estimated.placeholders) if committed is None else None
    removed = await base.replaced(scope)
    _check_unreplaced(wanted, history, base, scope, removed)
    return WritePlan(
        url=handle.backend.url,
        mode=wanted.request.mode,
        position=history.head,
        partition_by=properties.partition_by,
        is_created=found is None,
        committed_at=None if committed is None else committed[0],
        scope=scope,
        partitions=_partitions(estimated, await at.partitions(), removed),
        removed=removed,
        retain_hours=properties.retain_hours,
        rows=estimated.rows,
        files=estimated.files,
        bytes=estimated.bytes,
        sizing=estimated.plan,
        estimate=estimated.estimate,
    )


async def _estimated(
    target: WriteTarget, properties: TableProperties, at: ViewAt, foresight: Foresight
) -> EstimatedOutput:
    groups: Sequence[IncomingGroup] | None = None
    if foresight.incoming is not None:
        groups = incoming_groups(foresight.incoming, target, properties)
    elif target.is_overwrite and target.static_scope is None:
        raise InvalidRequest(
            "a dynamic overwrite replaces the partitions of its rows; name the partitions of the input, or plan with "
            "the DataFrame: tallymark.plan(df, url, ...)"
        )
    profile = foresight.incoming if isinstance(foresight.incoming, WorkloadProfile) else None
    return EstimatedOutput.of(
        groups,
        await reference_files(at, (group.partition for group in groups or ())),
        sizing=foresight.sizing,
        are_tasks_counted=isinstance(foresight.incoming, CountedRows),
        sample=profile.sample if profile else None,
        updates=profile.updates if profile else (),
    )


def _check_unreplaced(
    wanted: TableSpec, history: History, base: WriteBase, scope: Scope | None, removed: tuple[DataFile, ...]
) -> None:
    """Raise ConflictError if a commit since the base conflicts with this write."""
    entry = LogEntry(
        kind="commit",
        instant=wanted.created,
        nonce="",
        base=base.position,
        operation=wanted.request.mode,
        scope=scope,
        removed=removed,
    )
    check_conflicts(entry, history.after(base.position))


def _partitions(
    estimated: EstimatedOutput, stored: Collection[str], removed: tuple[DataFile, ...]
) -> tuple[PlannedPartition, ...]:
    """Return every partition that files are added to or removed from. ``stored``: partitions with files now."""
    stored = frozenset(stored)
    removed_by_partition: dict[str, list[DataFile]] = {}
    for file in removed:
        removed_by_partition.setdefault(file.partition, []).append(file)
    added = estimated.by_partition()
    nothing = EstimatedFiles(None, None)
    if estimated.groups is not None:
        nothing = EstimatedFiles(0, 0, None if estimated.plan is None else ())
    return tuple(
        PlannedPartition(
            partition=partition,
            is_new=partition not in stored,
            files=added.get(partition, nothing).files,
            rows=added.get(partition, nothing).rows,
            planned=added.get(partition, nothing).planned,
            removed_files=len(removed_by_partition.get(partition, ())),
            removed_rows=sum(file.rows for file in removed_by_partition.get(partition, ())),
            removed_bytes=sum(file.bytes for file in removed_by_partition.get(partition, ())),
        )
        for partition in sorted(added.keys() | removed_by_partition.keys())
    )
