"""Expiry of replaced files of a table with ``readers="table"``: a log entry with the horizon, then the deletes."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from tallymark.backends.events import EventLog
from tallymark.engine.background import background_tasks
from tallymark.engine.instants.finish import Progress, delete_replaced, drop_bookkeeping
from tallymark.engine.instants.project import project
from tallymark.engine.instants.reserve import reserve
from tallymark.engine.instants.rollback import roll_back
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.maintenance.readers import Readers, drop_dead, find_readers
from tallymark.engine.timeline.entry import DataFile, LogEntry
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.instant import parse_instant
from tallymark.engine.timeline.log import new_nonce
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.timeline.reader_lease import Reader
from tallymark.engine.timeline.reservation import Reservation

_events = EventLog(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanScan:
    """What a clean had to look at, to know what is due. None of it is the whole table."""

    entries: int
    """Of the log: those that have replaced something since the horizon of the clean before."""
    partitions: int
    """Those that what is due lies in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What has been kept for long enough."""

    horizon: int
    """The position up to which it was replaced; that of the clean before where nothing is due."""
    files: tuple[DataFile, ...]
    looked_at: CleanScan
    overdue_s: float = 0.0
    """For how long the oldest of them has been due, by the store's clock."""
    held: tuple[DataFile, ...] = ()
    """Files that were kept for as long, and remain for these readers."""
    readers: tuple[Reader, ...] = ()

    def sparing(self, readers: Readers, history: History) -> "Due":
        """Return the part of it that none of these readers may still open."""
        limit = readers.horizon_max
        if limit is None or limit >= self.horizon:
            return self
        held = history.replaced(range(max(limit, history.horizon) + 1, self.horizon + 1))
        return replace(
            self,
            horizon=max(history.horizon, history.retained_since(limit)),
            files=history.replaced(range(history.horizon + 1, limit + 1)),
            held=held + self.held,
            readers=tuple(reader for reader in readers.living if reader.position < self.horizon),
        )


async def expire_due(handle: TableHandle, properties: TableProperties) -> None:
    """Expire what is due by the table's own retention, once it has been due for a while (``clean_overdue_ratio``).

    Where nothing can be due, no request is sent.
    """
    if properties.retain_hours is None:
        return
    patience_s = properties.retain_hours * 3600 * handle.commit_settings.clean_overdue_ratio
    if _may_be_due(handle, properties.retain_hours * 3600 + patience_s):
        due = await find_due(handle, properties.retain_hours)
        if due.files and due.overdue_s >= patience_s:
            await expire(handle, properties, due)


def _may_be_due(handle: TableHandle, after_s: float) -> bool:
    """Return False if what this process knows shows that the oldest replaced file is not due yet.

    It was replaced after its writer had started, and the instant states that time by the writer's clock. If that clock,
    or ours, is wrong, this check may read the log needlessly, or later than possible: the store's times decide what is
    due. An instant in the future shows that one of them is wrong, and nothing else.
    """
    history = handle.log.history
    replacing = history.replacing(range(history.horizon + 1, history.head + 1))
    if not replacing:
        return False
    age_s = (handle.clock.now() - parse_instant(history.instants_at(replacing[0])[0])).total_seconds()
    return age_s < 0 or age_s >= after_s


async def find_due(
    handle: TableHandle, retain_hours: float, *, now: Callable[[], Awaitable[float]] | None = None
) -> Due:
    """Return what was replaced at least that many hours ago, as far as the log has been read.

    A file was replaced when the entry that names it was put, by the store's clock. ``now`` returns the time of the same
    clock; by default it is that of the newest entry: what was due then, is due. Only entries are read that have
    replaced something since the horizon.
    """
    history = handle.log.history
    replacing = history.replacing(range(history.horizon + 1, history.head + 1))
    if not replacing:
        return Due(horizon=history.horizon, files=(), looked_at=CleanScan(entries=0, partitions=0))
    put = await handle.log.times()
    present = put.newest if now is None else await now()
    latest = present - retain_hours * 3600
    horizon = max((position for position in replacing if put.at(position) <= latest), default=history.horizon)
    due = range(history.horizon + 1, horizon + 1)
    files = (await handle.log.reach_replaced(due)).replaced(due)
    partitions = {file.partition for file in files}
    return Due(
        horizon=horizon,
        files=files,
        looked_at=CleanScan(entries=len(replacing), partitions=len(partitions)),
        overdue_s=max(0.0, latest - put.at(replacing[0])),
    )


async def expire(
    handle: TableHandle, properties: TableProperties, due: Due, *, progress: Progress | None = None
) -> Due:
    """Win a clean entry, then delete. Return what was deleted: less than was due where a reader has a lease, nothing
    where another clean was first.

    The entry has its own instant, reserved like that of a write: if this process dies, the next writer finds the
    reservation, and with the entry in the log it deletes the rest. The same holds where the block is cancelled.

    Leases are read twice: before an instant is started, to see whether there is anything to do; and after it is
    reserved, which is the reading that counts.
    """
    readers = await find_readers(handle)
    await drop_dead(handle, readers)
    due = due.sparing(readers, handle.log.history)
    if not due.files:
        return due
    reservation, lease = await reserve(handle, operation="clean", marker_kind="direct")
    async with background_tasks() as background:
        background.start_soon(lease.keep)
        due = due.sparing(await find_readers(handle), handle.log.history)
        position = await _win(handle, reservation, due)
        if position is not None:
            _events.info("files.let_go", instant=reservation.instant, horizon=due.horizon, files=len(due.files))
            await project(handle, properties, position)  # a reader of the Hudi format that sees no overwrite needs them
            await delete_replaced(handle, properties, position, progress=progress)
    await lease.give_up()
    if position is None:
        await roll_back(handle, properties, reservation, is_own=True)
        return replace(due, files=())
    await drop_bookkeeping(handle, reservation.instant)
    return due


async def _win(handle: TableHandle, reservation: Reservation, due: Due) -> int | None:
    """Return the position of the entry; None where readers or another clean leave nothing to expire."""
    if not due.files:
        return None
    entry = LogEntry(
        kind="clean",
        instant=reservation.instant,
        nonce=new_nonce(),
        base=handle.log.history.head,
        operation="clean",
        horizon=due.horizon,
    )
    try:
        return await handle.log.win(entry, check=lambda history: _check_behind(history, due))
    except _Overtaken:
        return None


def _check_behind(history: History, due: Due) -> None:
    if history.horizon >= due.horizon:
        raise _Overtaken


class _Overtaken(Exception):
    """Another clean has expired as much, or more."""
