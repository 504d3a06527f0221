"""Checkpoints of a table, written so that its log need not be read from the start."""

import anyio

from tallymark.backends.events import EventLog
from tallymark.engine.errors import TryAgain
from tallymark.engine.instants.project import project
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.maintenance.archive import delete_archived, find_bounds
from tallymark.engine.maintenance.clean import drop_strays, sweep_fences
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.views.checkpoint_writer import Checkpointed, write_checkpoint

_events = EventLog(__name__)

ATTEMPTS = 3
"""Attempts of ``leave_checkpoint`` while other writers put theirs at the same time, which would serve as well."""


FIRST_AFTER = 8
"""Entries of the log after which a table gets its first checkpoint: until then, every write lists the log."""


async def checkpoint_due(handle: TableHandle, properties: TableProperties) -> None:
    """At the end of a job, write a checkpoint if enough entries were added since the last, or if that is damaged.

    The job has succeeded in any case: an error is logged, and a later job tries again.
    """
    settings = handle.view_settings
    checkpoint_position = handle.checkpoints.statistics.position
    since = handle.log.history.head - checkpoint_position
    enough = settings.checkpoint_entries if checkpoint_position else min(FIRST_AFTER, settings.checkpoint_entries)
    if since < enough and not (handle.checkpoints.is_damaged and since):
        return
    try:
        with anyio.fail_after(settings.checkpoint_timeout_s):
            await _write(handle, properties)
    except Exception as error:
        _events.warning("checkpoint.postponed", url=handle.backend.url, reason=error)


async def leave_checkpoint(handle: TableHandle, properties: TableProperties, *, up_to: int = 0) -> Checkpointed:
    """Write a checkpoint of the whole log, after every part of the last one was read: a damaged one is replaced. Then
    archive, as ``find_bounds`` permits.

    Raises:
        TryAgain: other writers put theirs at the same time, repeatedly.
    """
    for _ in range(ATTEMPTS):
        await handle.log.refresh()
        await handle.view(properties).preload()
        if (done := await _write(handle, properties, up_to)) is not None:
            return done
    raise TryAgain(f"others leave checkpoints of {handle.backend.url} at the same time, which serve as well; ask later")


async def archive_up_to(handle: TableHandle, properties: TableProperties, position: int) -> bool:
    """Archive the log up to that position, or as far as nothing needs its entries. Return whether it is.

    Entries from the older of the newest two checkpoints on are needed: so two of the log's head are written.

    Raises TryAgain, as ``leave_checkpoint``.
    """
    for _ in range(2):
        if handle.log.history.start < position:
            await leave_checkpoint(handle, properties, up_to=position)
    return handle.log.history.start >= position


async def _write(handle: TableHandle, properties: TableProperties, up_to: int = 0) -> Checkpointed | None:
    """Write a checkpoint after projecting all entries that it covers: a reader that starts from it assumes that."""
    bounds = await find_bounds(handle, properties, up_to=up_to)
    while handle.memory.projected < handle.log.history.head:
        await project(handle, properties, handle.log.history.head)
    history, view = handle.log.history, handle.view(properties)
    base = history.as_base(bounds.start, bounds.floor)
    done = await write_checkpoint(
        handle.backend,
        handle.checkpoints,
        history,
        view,
        base,
        needed=bounds.checkpoints,
        table=properties.created,
    )
    if done is not None and done.parts_written + done.bytes_written:
        _events.info(
            "checkpoint.written",
            url=handle.backend.url,
            position=done.position,
            files=done.files,
            partitions=done.partitions,
            parts=done.parts,
            parts_written=done.parts_written,
            bytes=done.bytes_written,
            seconds=done.seconds,
        )
        await delete_archived(handle, bounds)
        await drop_strays(handle)
        await sweep_fences(handle)
    return done
