"""Status of a table for operators: its content and its open instants."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

import pyarrow as pa

from tallymark.backends.errors import NotFound
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.inspection.file_sizes import FileSizes, SizeIndex
from tallymark.engine.instants.open_instants import open_reservations, read_reservation
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.maintenance.recovery import is_dead
from tallymark.engine.maintenance.store_time import StoreClock
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.history_base import DecisionKind
from tallymark.engine.timeline.properties import Readers, TableProperties
from tallymark.engine.timeline.reservation import OPEN_FOLDER, Reservation
from tallymark.engine.timeline.writer_identity import WriterIdentity

WriterState = Literal["alive", "dead", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenInstant:
    """An instant that is being written, or that its writer has left."""

    reservation: Reservation
    beat_age_s: float | None
    """Seconds since the writer's last heartbeat, by the store's clock; None without a heartbeat or a clock."""
    writer: WriterState
    """``dead``: the next write or rollback ends the instant. ``unknown``: with read access only."""
    decision: DecisionKind | None
    """The log's decision, if there is one: then only its last steps are left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatus:
    """State of a table at a moment."""

    name: str
    readers: Readers
    retain_hours: float | None
    """How long replaced files are retained; None where they are not."""
    retained: tuple[DataFile, ...]
    """Replaced files that are still retained."""
    schema: pa.Schema
    partition_by: tuple[str, ...]
    sizes: FileSizes
    """The live files, by size."""
    newest_entry: datetime | None
    """When the newest entry of the log was put, by its writer's clock; None before the first."""
    open_instants: tuple[OpenInstant, ...]


async def read_status(
    handle: TableHandle,
    properties: TableProperties,
    *,
    sizes: SizeIndex | None = None,
    clock: StoreClock | None = None,
) -> TableStatus:
    """Return the status. ``sizes`` and ``clock`` are those of earlier queries with this handle.

    Where instants are open, a heartbeat is put and deleted, to read the store's clock.
    """
    open_instants = await read_open_instants(handle, clock)
    history = handle.log.history
    view = handle.view(properties).at(history.head)
    newest_entry = _moment(history.time_ms)  # of this position
    return TableStatus(
        name=properties.name,
        readers=properties.readers,
        retain_hours=properties.retain_hours,
        retained=await _retained(handle, properties),
        schema=properties.schema,
        partition_by=properties.partition_by,
        newest_entry=newest_entry,
        sizes=await (sizes or SizeIndex()).at(view),
        open_instants=open_instants,
    )


def _moment(time_ms: int) -> datetime | None:
    """Return the time; None for one that no calendar has."""
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC) if time_ms else None
    except (ValueError, OverflowError, OSError):
        return None


async def read_open_instants(handle: TableHandle, clock: StoreClock | None = None) -> tuple[OpenInstant, ...]:
    """Return the open instants as of the log's end, which is read."""
    reservations = await open_reservations(handle)  # before the heartbeats: a reserved writer has put one before
    ages = await (clock or StoreClock(handle)).heartbeat_ages() if reservations else None
    history = await handle.log.refresh()
    return tuple(_open_instant(reservation, ages, history) for reservation in reservations)


def not_open(instant: str) -> InvalidRequest:
    return InvalidRequest(f"instant {instant!r} is not open; 'tallymark status' lists those that are")


async def read_open_instant(handle: TableHandle, instant: str) -> OpenInstant | None:
    """Return one of them, by the log as it was last read; None where no writer has the instant any more."""
    path = f"{OPEN_FOLDER}/{instant}"
    try:
        reservation = await read_reservation(handle, path)
    except NotFound:
        return None
    return _open_instant(reservation, await StoreClock(handle).heartbeat_ages(), handle.log.history)


async def _retained(handle: TableHandle, properties: TableProperties) -> tuple[DataFile, ...]:
    if properties.readers == "directory":
        return ()
    kept = range(handle.log.history.horizon + 1, handle.log.history.head + 1)
    return (await handle.log.reach_replaced(kept)).replaced(kept)


def _open_instant(reservation: Reservation, ages: Mapping[str, float] | None, history: History) -> OpenInstant:
    decided = history.decided(reservation.instant)
    return OpenInstant(
        reservation=reservation,
        beat_age_s=None if ages is None else ages.get(reservation.instant),
        writer=writer_state(reservation, ages),
        decision=None if decided is None else decided.kind,
    )


def writer_state(reservation: Reservation, ages: Mapping[str, float] | None) -> WriterState:
    """Return the state by the ages of heartbeats; None where they are unknown."""
    here = WriterIdentity.here()
    if ages is None:
        return "dead" if reservation.writer.is_gone(seen_from=here) else "unknown"
    return "dead" if is_dead(reservation, ages, seen_from=here) else "alive"
