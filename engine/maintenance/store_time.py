"""Current time by the store's own clock."""

import anyio

from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.maintenance.recovery import clock_probe
from tallymark.engine.timeline.reservation import HEARTBEAT_FOLDER


async def store_time(handle: TableHandle) -> float:
    """Return the store's time by the newest heartbeat: the caller's own, unless a writer with a fast clock
    deleted it.
    """
    own = await clock_probe(handle)
    try:
        heartbeats = [entry.modified async for entry in handle.backend.list(HEARTBEAT_FOLDER)]
    finally:
        with anyio.CancelScope(shield=True), anyio.move_on_after(handle.commit_settings.end_timeout_s):
            await handle.backend.delete([own])
    return max(heartbeats, default=0.0)
