"""Planner of a dry run: it reads the log, and uses the input's row counts where they are known.

What goes is decided by the code that jobs use (``target``, ``write_base``). Nothing is put, and nothing is reserved:
another write may come first.
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
from tallymark.engine.planning.job_requests import JobShape, RequestCounts, entry_bytes, job_requests, names_a_delete
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
    """What a plan may go by beside the table."""

    incoming: Incoming | None
    """None: of the input's rows nothing is known."""
    sizing: SizingSettings

    def __post_init__(self) -> None:
        check_settings("sizing", self.sizing, SizingSettings)


_NOTHING = EstimatedOutput(groups=(), bytes_a_row=None, sizing=NO_SIZING)


async def plan_write(handle: TableHandle, wanted: TableSpec, foresight: Foresight) -> WritePlan:
    """Return what the write would do now.

    Raises:
        InvalidRequest: as the write would before its tasks run, and as a task would for rows that were counted; or it
            is a dynamic overwrite of unknown rows.
        ConflictError: what was read at ``base`` has been replaced since.
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
    requests = _requests(
        handle, history, properties, estimated, removed, is_created=found is None, is_overwrite=target.is_overwrite
    )
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
        requests=requests,
    )


async def _estimated(
    target: WriteTarget, properties: TableProperties, at: ViewAt, foresight: Foresight
) -> EstimatedOutput:
    groups: Sequence[IncomingGroup] | None = None
    if foresight.incoming is not None:
        groups = incoming_groups(foresight.incoming, target, properties)
    elif target.is_overwrite and target.static_scope is None:
        raise InvalidRequest(
            "what a dynamic overwrite replaces, its rows decide; name the partitions that the input has rows for, or "
            "plan with the DataFrame: tallymark.write(df, ..., dry_run=True)"
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
    """What has been committed since the base conflicts already; what will be, nobody knows."""
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
    """Every partition that files come to or go from. ``stored``: those that hold files now."""
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


def _requests(
    handle: TableHandle,
    history: History,
    properties: TableProperties,
    estimated: EstimatedOutput,
    removed: tuple[DataFile, ...],
    *,
    is_created: bool,
    is_overwrite: bool,
) -> RequestCounts | None:
    if estimated is _NOTHING or estimated.files is None or handle.backend.has_staging:
        return None
    filled = estimated.plan.fills if estimated.plan is not None else ()
    return job_requests(
        JobShape(
            log_entries=history.head,
            checkpoint=handle.checkpoints.statistics.position,
            has_commits=bool(history.commits),
            is_created=is_created,
            files=estimated.files,
            new_partitions=sum(not history.has_contained(partition) for partition in estimated.partitions),
            filled_files=len(filled),
            is_sized=estimated.plan is not None,
            may_fill=estimated.plan is not None and not is_overwrite,
            deleted_files=len(removed) + len(filled) if properties.readers == "directory" else 0,
            entry_bytes=_entry_bytes(estimated, (*removed, *filled)),
            names_a_delete=names_a_delete(handle.backend.url),
        )
    )


def _entry_bytes(estimated: EstimatedOutput, removed: tuple[DataFile, ...]) -> int:
    """Of the entry that names the files that come and go."""
    added = sum(entry_bytes(of.files or 0, partition) for partition, of in estimated.by_partition().items())
    return added + sum(entry_bytes(1, file.partition) for file in removed)
