"""Reader leases as a clean sees them: no file that a leased snapshot may still open is expired.

``inspection.leased_snapshot`` describes the order of steps that makes this safe.
"""

from dataclasses import dataclass

from tallymark.backends.concurrently import concurrently
from tallymark.backends.contract import Entry
from tallymark.backends.errors import NotFound, NotPermitted
from tallymark.backends.events import EventLog
from tallymark.engine.errors import CorruptObject
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.maintenance.store_time import store_time
from tallymark.engine.timeline.reader_lease import READ_FOLDER, Reader
from tallymark.engine.timeline.writer_identity import WriterIdentity

_events = EventLog(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Readers:
    """The leases at a moment: every one that was taken before they were listed and not given up since."""

    living: tuple[Reader, ...]
    dead: tuple[Reader, ...]

    @property
    def horizon_max(self) -> int | None:
        """The greatest horizon that a clean may have; None without readers."""
        return min((reader.position for reader in self.living), default=None)


async def find_readers(handle: TableHandle) -> Readers:
    """Read the leases. Unless there are none, a heartbeat is put and deleted, to read the store's clock.

    The time is read before the leases are listed: a pause in between makes no lease appear older than it is. Where this
    process may not write, every lease counts whose process is not known to have ended.
    """
    if not [entry async for entry in handle.backend.list(READ_FOLDER)]:
        return Readers(living=(), dead=())
    try:
        now = await store_time(handle)
    except NotPermitted:
        now = 0.0
    here = WriterIdentity.here()
    living: list[Reader] = []
    dead: list[Reader] = []

    async def read(entry: Entry) -> None:
        if (reader := await _read(handle, entry.path)) is not None:
            (dead if reader.is_dead(now - entry.modified, seen_from=here) else living).append(reader)

    leases = [entry async for entry in handle.backend.list(READ_FOLDER)]
    await concurrently(read, leases, limit=handle.commit_settings.concurrency)
    return Readers(living=_sorted(living), dead=_sorted(dead))


async def drop_dead(handle: TableHandle, readers: Readers) -> None:
    """Delete the leases of dead readers.

    A reader that is alive after all puts its lease again with its next heartbeat.
    """
    for reader in readers.dead:
        _events.info("lease.dropped", position=reader.position, host=reader.process.host, pid=reader.process.pid)
    if readers.dead:
        await handle.backend.delete([reader.path for reader in readers.dead])


async def _read(handle: TableHandle, path: str) -> Reader | None:
    """Return the reader of a lease; None if it was given up since. An unreadable lease retains everything until it
    expires.
    """
    try:
        return Reader.decode(await handle.backend.get(path), source=path)
    except NotFound:
        return None
    except CorruptObject as error:
        _events.warning("lease.unreadable", path=path, reason=error)
        return Reader(
            nonce=path.rpartition("/")[2],
            position=0,
            process=UNKNOWN,
            expiry_s=handle.lease_settings.expiry_s,
        )


UNKNOWN = WriterIdentity(host="unknown", boot_id=None, pid_namespace=None, pid=0, started=None)
"""The reader of an unreadable lease: not a process of this machine, so that only its age counts."""


def _sorted(readers: list[Reader]) -> tuple[Reader, ...]:
    return tuple(sorted(readers, key=lambda reader: (reader.position, reader.nonce)))
