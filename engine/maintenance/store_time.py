"""Current time by the store's own clock."""

import math
from collections.abc import Callable

import anyio

from tallymark.backends.errors import NotPermitted
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.maintenance.recovery import clock_probe, read_heartbeats
from tallymark.engine.timeline.reservation import HEARTBEAT_FOLDER

CLOCK_S = 60.0
"""Time for which the local clock is used in place of the store's: in it they drift by less than a second."""


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


class StoreClock:
    """The store's time for repeated queries: a heartbeat is put and deleted once a minute to read it."""

    def __init__(self, handle: TableHandle, *, now: Callable[[], float] = anyio.current_time) -> None:
        """``now``: seconds of a monotonic clock."""
        self._handle = handle
        self._now = now
        self._read: tuple[float, float | None] = -math.inf, None
        """When the store's clock was read, and what it showed; None with read access only."""

    async def heartbeat_ages(self) -> dict[str, float] | None:
        """Return the seconds since the last heartbeat of each instant; None with read access only, which cannot read
        the clock.
        """
        now = self._now()
        if now - self._read[0] >= CLOCK_S:
            self._read = now, await self._store_time()
        read_at, time = self._read
        if time is None:
            return None
        time += now - read_at
        heartbeats = await read_heartbeats(self._handle)
        return {instant: max(0.0, time - modified) for instant, modified in heartbeats.items()}

    async def _store_time(self) -> float | None:
        try:
            return await store_time(self._handle)
        except NotPermitted:
            return None
