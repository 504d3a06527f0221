"""Planner of a dry run: it reads the log, and uses the input's row counts where they are known.

The code of jobs decides which files are removed (``jobs.target``, ``jobs.base``). Nothing is written or reserved, so
another write may commit first.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.jobs.base import WriteBase
from tallymark.engine.jobs.file_plan import reference_files, sized
from tallymark.engine.jobs.prepare import find_table
from tallymark.engine.jobs.table_spec import TableSpec
from tallymark.engine.jobs.target import WriteTarget
from tallymark.engine.jobs.txn import committed_write, declared
from tallymark.engine.planning.estimated_output import EstimatedFiles, EstimatedOutput
from tallymark.engine.planning.input_rows import CountedRows, Incoming, IncomingGroup, incoming_groups
from tallymark.engine.planning.write_plan import PlannedPartition, WritePlan
from tallymark.engine.settings import NO_SIZING, SizingSettings, check_settings
from tallymark.engine.sizing.profile import WorkloadProfile
from tallymark.engine.timeline.conflict import check_conflicts
from tallymark.engine.timeline.entry import DataFile, LogEntry
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.timeline.scope import Scope
from tallymark.engine.views.view import ViewAt


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
        InvalidRequest: as the write would before its tasks run, and as a task would for counted rows; or it is a
            dynamic overwrite with an unknown input.
        ConflictError: files that were read at ``base`` have been replaced since.
    """
    found = await find_table(handle, wanted)
    properties = found or wanted.beside(None)
    history = await handle.log.refresh()
    target = WriteTarget.of(wanted.request, properties)
    view = handle.view(properties)
    at, base = view.at(history.head), WriteBase.of(view, handle.log, wanted.request.base)
    committed = await committed_write(handle.log, wanted.request.txn, declared(target))
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
    return EstimatedOutput.of(
        groups,
        await reference_files(at, (group.partition for group in groups or ())),
        sizing=foresight.sizing,
        are_tasks_counted=isinstance(foresight.incoming, CountedRows),
        sample=foresight.incoming.sample if isinstance(foresight.incoming, WorkloadProfile) else None,
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
