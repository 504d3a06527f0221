"""Status of a table for operators: its content and its open instants."""

from dataclasses import dataclass
from typing import Literal

from tallymark.backends.errors import NotFound, NotPermitted
from tallymark.engine.inspection.snapshot import Snapshot
from tallymark.engine.instants.open_instants import open_reservations, read_reservation
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.maintenance.recovery import clock_probe, heartbeat_ages, is_dead
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
    snapshot: Snapshot
    open_instants: tuple[OpenInstant, ...]


async def read_status(handle: TableHandle, properties: TableProperties) -> TableStatus:
    """Return the status. Where instants are open, a heartbeat is put and deleted, to read the store's clock."""
    reservations = await open_reservations(handle)  # before the heartbeats: a reserved writer has put one before
    ages = await _heartbeat_ages(handle) if reservations else None
    history = await handle.log.refresh()
    return TableStatus(
        name=properties.name,
        readers=properties.readers,
        retain_hours=properties.retain_hours,
        retained=await _retained(handle, properties),
        snapshot=await Snapshot.of(handle, properties),
        open_instants=tuple(_open_instant(reservation, ages, history) for reservation in reservations),
    )


async def read_open_instant(handle: TableHandle, instant: str) -> OpenInstant | None:
    """Return one of them, by the log as it was last read; None where no writer has the instant any more."""
    path = f"{OPEN_FOLDER}/{instant}"
    try:
        reservation = await read_reservation(handle, path)
    except NotFound:
        return None
    return _open_instant(reservation, await _heartbeat_ages(handle), handle.log.history)


async def _retained(handle: TableHandle, properties: TableProperties) -> tuple[DataFile, ...]:
    if properties.readers == "directory":
        return ()
    kept = range(handle.log.history.horizon + 1, handle.log.history.head + 1)
    return (await handle.log.reach_replaced(kept)).replaced(kept)


async def _heartbeat_ages(handle: TableHandle) -> dict[str, float] | None:
    """Return ``heartbeat_ages``; None with read access only, which cannot read the store's clock."""
    try:
        own = await clock_probe(handle)
    except NotPermitted:
        return None
    try:
        return await heartbeat_ages(handle, own)
    finally:
        await handle.backend.delete([own])


def _open_instant(reservation: Reservation, ages: dict[str, float] | None, history: History) -> OpenInstant:
    decided = history.decided(reservation.instant)
    return OpenInstant(
        reservation=reservation,
        beat_age_s=None if ages is None else ages.get(reservation.instant),
        writer=_writer_state(reservation, ages),
        decision=None if decided is None else decided.kind,
    )


def _writer_state(reservation: Reservation, ages: dict[str, float] | None) -> WriterState:
    here = WriterIdentity.here()
    if ages is None:
        return "dead" if reservation.writer.is_gone(seen_from=here) else "unknown"
    return "dead" if is_dead(reservation, ages, seen_from=here) else "alive"
