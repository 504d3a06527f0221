"""Rollback of an instant that will not commit: none of its files remains; on object stores fences do, until a clean."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from tallymark.backends.events import EventLog
from tallymark.engine.errors import InvalidRequest, RolledBack, TableReplaced
from tallymark.engine.instants.fencing import Fencer
from tallymark.engine.instants.finish import drop_bookkeeping, finish
from tallymark.engine.instants.marked import marked_in_storage
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.markers.loading import has_markers
from tallymark.engine.metrics.registry import PROCESS
from tallymark.engine.timeline.entry import LogEntry
from tallymark.engine.timeline.history_base import DecisionKind
from tallymark.engine.timeline.log import new_nonce
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.timeline.reservation import Reservation
from tallymark.engine.views.block import unpack_rows

_events = EventLog(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How an open instant was ended."""

    instant: str
    outcome: Literal["rolled back", "was committed", "was cleaned", "was over"]
    """The middle two were decided by the instant's writer, which died before its last steps were done. One that was
    over has an archived entry: what arrived late was left, or its reservation was lost. Marked files that the table
    neither holds nor retains are removed.
    """
    marked: int
    """Number of marked files, which do not exist any more (or are fenced), whether they existed before or not."""
    fences: int


async def roll_back(
    handle: TableHandle, properties: TableProperties, reservation: Reservation, *, is_own: bool = False
) -> Ended:
    """Win a rollback entry for the instant before anything is changed, then remove everything that it marked.

    If the log already contains the instant's commit or clean, that is finished instead. If the log is another one than
    this process has read, its entry decides nothing there: then only an instant of its own (``is_own``), which no other
    process commits, is removed.

    Raises:
        TableReplaced: the log is another one, and the instant another process's. Nothing was changed.
    """
    instant = reservation.instant
    try:
        kind = await decide(handle, reservation)
    except TableReplaced as error:
        if not is_own:
            raise
        _events.warning("table.replaced", instant=instant, url=handle.backend.url, reason=error)
        kind = "rollback"
    if kind == "archived" and not await has_markers(handle.backend, instant):
        await drop_bookkeeping(handle, instant)
        return Ended(instant=instant, outcome="was over", marked=0, fences=0)
    if kind in ("commit", "clean"):
        await finish(handle, properties, reservation)
        return Ended(
            instant=instant, outcome="was committed" if kind == "commit" else "was cleaned", marked=0, fences=0
        )
    fencer = Fencer(
        backend=handle.backend,
        instant=instant,
        schema=properties.schema,
        settings=handle.commit_settings,
    )
    await fencer.close()
    marked = (await marked_in_storage(handle, reservation)).paths
    keep = await _held(handle, properties, marked) if kind == "archived" else ()
    fenced = await fencer.fence(marked, keep=keep)
    await drop_bookkeeping(handle, instant)
    if kind != "archived":
        PROCESS.count("rollbacks")
        _events.info("instant.rolled_back", instant=instant, marked=len(marked), fences=len(fenced))
    return Ended(
        instant=instant,
        outcome="was over" if kind == "archived" else "rolled back",
        marked=len(marked),
        fences=len(fenced),
    )


async def _held(handle: TableHandle, properties: TableProperties, paths: Collection[str]) -> frozenset[str]:
    """Return those of the paths that the table holds, or retains. An instant whose entry is archived had its files
    there, if it was committed.
    """
    view = handle.view(properties)
    held: set[str] = set()
    for partition in {path.rpartition("/")[0] for path in paths}:
        held.update(row.file.path for row in unpack_rows(await view.block(partition), partition))
    return frozenset(held.intersection(paths))


async def decide(handle: TableHandle, reservation: Reservation) -> DecisionKind:
    """Win a rollback entry for its instant unless the log has decided it. Return the kind of the deciding entry.

    An archived entry has nothing left to finish, whether its instant is before the floor or not.
    """
    instant = reservation.instant
    history = await handle.log.refresh()
    if history.decided(instant) is None:
        entry = LogEntry(
            kind="rollback",
            instant=instant,
            nonce=new_nonce(),
            base=history.head,
            operation="rollback",
        )
        try:
            await handle.log.win(entry, check=lambda _: None)
        except TableReplaced:
            raise
        except RolledBack:
            pass  # decided by another writer since
    decided = history.decided(instant)
    assert decided is not None
    try:
        await handle.log.reach(decided.position - 1)
        if decided.kind == "clean":
            await handle.log.reach_replaced(handle.log.history.cleaned(decided.position))
    except InvalidRequest:  # what its end would need is archived, which waits for that end
        return "archived"
    return decided.kind
