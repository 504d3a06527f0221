"""Archive of the commit log and of the Hudi timeline: deletion of what no reader and no writer can need any more.

It follows a checkpoint, which contains all that later readers need of the entries before it, and records how far the
log is archived. These rules keep everything else as it was:

- *Needed entries remain*: those from the checkpoint on from which the writer of an open instant has read the log, that
  of an instant that is not finished, those from the first on that has replaced a file which is still retained or which
  a clean has yet to delete, and those from the older of the two named checkpoints on.
- *Entries are deleted in their order*, each before the next is requested, so that the log in storage is always a run
  without a gap. A writer that was stopped until its next position was free again finds the entry before it missing
  (``CommitLog.win``), and a reader finds its head missing (``CommitLog.refresh``).
- *The Hudi timeline begins with a commit below which every instant is over.* Readers of the format treat files older
  than the first instant as committed, which they are: all other files of these instants were removed before. A file of
  an open instant is never older. Instants are deleted in their order, so that what remains always begins so.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tallymark.backends.events import EventLog
from tallymark.engine.instants.finish import DELETE_BATCH
from tallymark.engine.instants.open_instants import open_reservations
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.instant import FLOOR
from tallymark.engine.timeline.listing import Listing, read_listing
from tallymark.engine.timeline.log import entry_path
from tallymark.engine.timeline.properties import TableProperties

_events = EventLog(__name__)


@dataclass(frozen=True, slots=True)
class ArchiveBounds:
    """How far a table may be archived."""

    start: int
    """Entries up to this position are not needed."""
    floor: str
    """Every instant before this one is over, and the entries after ``start`` decide none of them."""
    timeline_floor: str
    """Of the instants of the Hudi timeline before this one, only the last commit is needed."""
    checkpoints: frozenset[int]
    """Positions of checkpoints from which open writers have read the log: they may read parts of them yet."""


async def find_bounds(handle: TableHandle, properties: TableProperties, *, up_to: int = 0) -> ArchiveBounds:
    """Return how far the table may be archived once a checkpoint of the log's head is durable: as far as the settings
    want, and up to that position in any case, unless something needs the entries.

    The log is read to its end after the open instants were listed: an instant that was open before, and is not listed
    any more, is in the history. One that was reserved later is later than the instant that was settled before.

    A table of format 1 is not archived: its entries are not linked.
    """
    known, settled = handle.log.history.head, handle.log.history.settled_instant
    open_ = await open_reservations(handle)
    history, manifest = await handle.log.refresh(), handle.checkpoints.manifest
    if not history.table:
        return ArchiveBounds(history.start, history.floor, FLOOR, frozenset())
    settings = handle.commit_settings
    limit = known
    for reservation in open_:
        decided = history.decided(reservation.instant)
        base = max(0, reservation.base - 1)  # its writer reads the entry again with which its checkpoint ends
        limit = min(limit, base, limit if decided is None else decided.position - 1)
    if properties.readers == "table":
        may_be_cleaning = {*(reservation.instant for reservation in open_), *history.instants_after(known)}
        retained = history.replacing(range(_first_kept(history, may_be_cleaning), history.head + 1))
        limit = min([limit, *(position - 1 for position in retained[:1])])
    written_before = 0 if manifest is None else manifest.position - 1
    wanted = max(known - settings.log_entry_count, up_to)
    start = max(history.start, min(limit, written_before, wanted))
    instants = [reservation.instant for reservation in open_]
    newest = [position for position in history.commits_after(0) if position <= known][-settings.timeline_commit_count :]
    kept = [instant for position in newest for instant in history.instants_at(position)] or [FLOOR]
    return ArchiveBounds(
        start=start,
        floor=_floor(history, start, [*instants, settled]),
        timeline_floor=_floor(history, limit, [*instants, *kept, settled]),
        checkpoints=frozenset(reservation.base for reservation in open_),
    )


def _first_kept(history: History, unfinished: Iterable[str]) -> int:
    """Return the first position whose replaced files may still be there, if these cleans have yet to delete theirs."""
    decided = [found for found in map(history.decided, unfinished) if found is not None and found.kind == "clean"]
    expired = [history.cleaned(found.position) for found in decided if found.position > history.start]
    return min([history.horizon + 1, *(positions.start for positions in expired)])


def _floor(history: History, position: int, others: Iterable[str]) -> str:
    """Return the first instant that is decided after a position, or is among the others."""
    return min([*history.instants_after(position), *others], default=history.floor)


async def delete_archived(handle: TableHandle, bounds: ArchiveBounds) -> None:
    """Delete what a durable checkpoint has archived within these bounds. Idempotent."""
    listing = await read_listing(handle.backend)
    numbers = [number for number in listing.numbers if number <= bounds.start]
    for number in numbers:
        await handle.backend.delete([entry_path(number)])
    await _delete_bodies(handle, listing, bounds)
    first = max((instant for instant in listing.completed if instant < bounds.timeline_floor), default=FLOOR)
    instants = sorted(instant for instant in listing.timeline if instant < first)
    await _delete_timeline(handle, listing, instants)
    if numbers or instants:
        _events.info(
            "log.archived", url=handle.backend.url, start=bounds.start, entries=len(numbers), instants=len(instants)
        )


async def _delete_bodies(handle: TableHandle, listing: Listing, bounds: ArchiveBounds) -> None:
    history = handle.log.history
    for instant, paths in listing.bodies.items():
        decided = history.decided(instant)
        if decided is not None and decided.position <= bounds.start:
            await handle.backend.delete(paths)


async def _delete_timeline(handle: TableHandle, listing: Listing, instants: list[str]) -> None:
    """Delete these instants' files, those that complete them last, and in their order."""
    completed = [listing.completed.get(instant) for instant in instants]
    others = [path for instant in instants for path in listing.timeline[instant] if path not in completed]
    for done in range(0, len(others), DELETE_BATCH):
        await handle.backend.delete(others[done : done + DELETE_BATCH])
    for path in completed:
        if path is not None:
            await handle.backend.delete([path])
