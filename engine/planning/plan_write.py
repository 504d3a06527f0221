"""Planner of a dry run: it reads the log, and uses the input's row counts where they are known.

What goes is decided by the code that jobs use (``target``, ``write_base``). Nothing is put, and nothing is reserved:
another write may come first.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.jobs.base import WriteBase
from tallymark.engine.jobs.file_plan import sized, telling_files
from tallymark.engine.jobs.prepare import find_table
from tallymark.engine.jobs.table_spec import TableSpec
from tallymark.engine.jobs.target import WriteTarget
from tallymark.engine.jobs.txn import committed_write, declared
from tallymark.engine.planning.estimated_output import Coming, ComingFiles
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


_NOTHING = Coming(groups=(), bytes_a_row=None, sizing=NO_SIZING)


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
    coming = await _coming(target, properties, base.at or at, foresight) if committed is None else _NOTHING
    if (profile := coming.profile) is not None:
        files = await telling_files(at, coming.partitions)
        planned = await sized(handle, files, profile, foresight.sizing, is_overwrite=target.is_overwrite)
        is_told = coming.sample is not None or files
        is_guess = foresight.sizing.policy == "balanced" and not is_told
        coming = replace(coming, plan=planned, is_guess=is_guess)
    scope = target.scope(coming.stand_ins) if committed is None else None
    removed = await base.replaced(scope)
    _check_unreplaced(wanted, history, base, scope, removed)
    requests = _requests(
        handle, history, properties, coming, removed, is_created=found is None, is_overwrite=target.is_overwrite
    )
    return WritePlan(
        url=handle.backend.url,
        mode=wanted.request.mode,
        position=history.head,
        partition_by=properties.partition_by,
        is_created=found is None,
        committed_at=None if committed is None else committed[0],
        scope=scope,
        partitions=_partitions(coming, await at.partitions(), removed),
        removed=removed,
        retain_hours=properties.retain_hours,
        rows=coming.rows,
        files=coming.files,
        bytes=coming.bytes,
        sizing=coming.plan,
        estimate=coming.estimate,
        requests=requests,
    )


async def _coming(target: WriteTarget, properties: TableProperties, at: ViewAt, foresight: Foresight) -> Coming:
    groups: Sequence[IncomingGroup] | None = None
    if foresight.incoming is not None:
        groups = incoming_groups(foresight.incoming, target, properties)
    elif target.is_overwrite and target.static_scope is None:
        raise InvalidRequest(
            "what a dynamic overwrite replaces, its rows decide; name the partitions that the input has rows for, or "
            "plan with the DataFrame: tallymark.write(df, ..., dry_run=True)"
        )
    return Coming.of(
        groups,
        await telling_files(at, (group.partition for group in groups or ())),
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


def _partitions(coming: Coming, held: Collection[str], removed: tuple[DataFile, ...]) -> tuple[PlannedPartition, ...]:
    """Every partition that files come to or go from. ``held``: those that hold files now."""
    held = frozenset(held)
    gone: dict[str, list[DataFile]] = {}
    for file in removed:
        gone.setdefault(file.partition, []).append(file)
    came = coming.by_partition()
    nothing = ComingFiles(None, None)
    if coming.groups is not None:
        nothing = ComingFiles(0, 0, None if coming.plan is None else ())
    return tuple(
        PlannedPartition(
            partition=partition,
            is_new=partition not in held,
            files=came.get(partition, nothing).files,
            rows=came.get(partition, nothing).rows,
            planned=came.get(partition, nothing).planned,
            removed_files=len(gone.get(partition, ())),
            removed_rows=sum(file.rows for file in gone.get(partition, ())),
            removed_bytes=sum(file.bytes for file in gone.get(partition, ())),
        )
        for partition in sorted(came.keys() | gone.keys())
    )


def _requests(
    handle: TableHandle,
    history: History,
    properties: TableProperties,
    coming: Coming,
    removed: tuple[DataFile, ...],
    *,
    is_created: bool,
    is_overwrite: bool,
) -> RequestCounts | None:
    if coming is _NOTHING or coming.files is None or handle.backend.has_staging:
        return None
    filled = coming.plan.fills if coming.plan is not None else ()
    return job_requests(
        JobShape(
            log_entries=history.head,
            checkpoint=handle.checkpoints.statistics.position,
            has_commits=bool(history.commits),
            is_created=is_created,
            files=coming.files,
            new_partitions=sum(not history.has_held(partition) for partition in coming.partitions),
            filled_files=len(filled),
            is_sized=coming.plan is not None,
            may_fill=coming.plan is not None and not is_overwrite,
            deleted_files=len(removed) + len(filled) if properties.readers == "directory" else 0,
            entry_bytes=_entry_bytes(coming, (*removed, *filled)),
            names_a_delete=names_a_delete(handle.backend.url),
        )
    )


def _entry_bytes(coming: Coming, removed: tuple[DataFile, ...]) -> int:
    """Of the entry that names the files that come and go."""
    came = sum(entry_bytes(of.files or 0, partition) for partition, of in coming.by_partition().items())
    return came + sum(entry_bytes(1, file.partition) for file in removed)
