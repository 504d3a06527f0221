"""What a write would do, found by reading the log, and the input's rows where they were counted.

What goes is decided by the code that jobs use (``target``, ``write_base``). Nothing is put, and nothing is reserved:
another write may come first.
"""

from dataclasses import dataclass

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.timeline.conflict import check_conflicts
from tallymark.engine.timeline.entry import DataFile, LogEntry
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.timeline.scope import Scope
from tallymark.engine.writes.coming import Coming
from tallymark.engine.writes.handle import TableHandle
from tallymark.engine.writes.incoming import Incoming, incoming_groups
from tallymark.engine.writes.job_requests import JobShape, RequestCounts, entry_bytes, job_requests, names_a_delete
from tallymark.engine.writes.plan import PlannedPartition, WritePlan
from tallymark.engine.writes.prepare import find_table
from tallymark.engine.writes.target import WriteTarget
from tallymark.engine.writes.txn import committed_write, declared
from tallymark.engine.writes.wanted import WantedTable
from tallymark.engine.writes.write_base import WriteBase


@dataclass(frozen=True, slots=True, kw_only=True)
class Foresight:
    """What a plan may go by beside the table."""

    incoming: Incoming | None
    """None: of the input's rows nothing is known."""
    max_file_bytes: int


_NOTHING = Coming(groups=(), bytes_a_row=None, max_file_bytes=0)


async def plan_write(handle: TableHandle, wanted: WantedTable, foresight: Foresight) -> WritePlan:
    """What the write would do now.

    Raises:
        InvalidRequest: as the write would before its tasks run, and as a task would for rows that were counted; or it
            is a dynamic overwrite of unknown rows.
        ConflictError: what was read at ``base`` has been replaced since.
    """
    found = await find_table(handle, wanted)
    properties = found or wanted.beside(None)
    history = await handle.log.refresh()
    target = WriteTarget.of(wanted.request, properties)
    base = WriteBase.of(history, wanted.request.base)
    committed = committed_write(history, wanted.request.txn, declared(target))
    coming = _coming(target, properties, base, foresight) if committed is None else _NOTHING
    scope = target.scope(coming.stand_ins) if committed is None else None
    removed = base.replaced(scope)
    _check_unreplaced(wanted, history, base, scope, removed)
    requests = _requests(handle, history, properties, coming, removed, is_created=found is None)
    return WritePlan(
        url=handle.backend.url,
        mode=wanted.request.mode,
        position=history.head,
        partition_by=properties.partition_by,
        is_created=found is None,
        committed_at=None if committed is None else committed[0],
        scope=scope,
        partitions=_partitions(coming, history.files, removed),
        removed=removed,
        retain_hours=properties.retain_hours,
        rows=coming.rows,
        files=coming.files,
        bytes=coming.bytes,
        estimate=coming.estimate,
        requests=requests,
    )


def _coming(target: WriteTarget, properties: TableProperties, base: WriteBase, foresight: Foresight) -> Coming:
    groups = None
    if foresight.incoming is not None:
        groups = incoming_groups(foresight.incoming, target, properties)
    elif target.is_overwrite and target.static_scope is None:
        raise InvalidRequest(
            "what a dynamic overwrite replaces, its rows decide; name the partitions that the input has rows for, or "
            "plan with the DataFrame: tallymark.write(df, ..., dry_run=True)"
        )
    return Coming.of(groups, base.files, max_file_bytes=foresight.max_file_bytes)


def _check_unreplaced(
    wanted: WantedTable, history: History, base: WriteBase, scope: Scope | None, removed: tuple[DataFile, ...]
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
    coming: Coming, live: tuple[DataFile, ...], removed: tuple[DataFile, ...]
) -> tuple[PlannedPartition, ...]:
    """Every partition that files come to or go from."""
    held = {file.partition for file in live}
    gone: dict[str, list[DataFile]] = {}
    for file in removed:
        gone.setdefault(file.partition, []).append(file)
    came = coming.by_partition()
    nothing = (None, None) if coming.groups is None else (0, 0)
    return tuple(
        PlannedPartition(
            partition=partition,
            is_new=partition not in held,
            files=came.get(partition, nothing)[0],
            rows=came.get(partition, nothing)[1],
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
) -> RequestCounts | None:
    if coming is _NOTHING or coming.files is None or handle.backend.has_staging:
        return None
    return job_requests(
        JobShape(
            log_entries=history.head,
            has_commits=any(entry.kind == "commit" for _, entry in history.after(0)),
            is_created=is_created,
            files=coming.files,
            new_partitions=sum(not history.has_held(partition) for partition in coming.partitions),
            deleted_files=len(removed) if properties.readers == "directory" else 0,
            entry_bytes=_entry_bytes(coming, removed),
            names_a_delete=names_a_delete(handle.backend.url),
        )
    )


def _entry_bytes(coming: Coming, removed: tuple[DataFile, ...]) -> int:
    """Of the entry that names the files that come and go."""
    came = sum(entry_bytes(files or 0, partition) for partition, (files, _) in coming.by_partition().items())
    return came + sum(entry_bytes(1, file.partition) for file in removed)
