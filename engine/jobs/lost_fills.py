"""Rewriting of a lost fill, whose small file another commit has replaced: its new rows get a separate file.

The job does this after it has sealed its tasks. The new file has a direct marker, and a separate staging directory;
after both, the log is read. A writer that rolls this instant back wins an entry first, and then closes that directory
and reads the markers. So either the job sees the entry, or the other writer finds the file.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace

import anyio
import pyarrow as pa

from tallymark.backends.errors import NotFound, Unavailable
from tallymark.backends.events import EventLog
from tallymark.engine.errors import CorruptObject, Sealed
from tallymark.engine.instants.fencing import Fencer
from tallymark.engine.instants.finish import recut_folder
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.jobs.fills import files_of
from tallymark.engine.markers.direct import create_direct
from tallymark.engine.tasks.file_growth import FooterSize
from tallymark.engine.tasks.file_name import new_file_name
from tallymark.engine.tasks.open_file import OpenFile
from tallymark.engine.tasks.report import Fill
from tallymark.engine.tasks.row_buffer import RowBuffer
from tallymark.engine.tasks.small_file_merge import batches_of
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.entry import DataFile, LogEntry
from tallymark.engine.timeline.lease import Lease
from tallymark.engine.timeline.log import new_nonce

_events = EventLog(__name__)

_in_thread = anyio.to_thread.run_sync


class LostFillRewriter:
    """The rewriter of one job, once that has sealed its tasks."""

    def __init__(self, handle: TableHandle, lease: Lease, ticket: WriteTicket) -> None:
        self._handle = handle
        self._lease = lease
        self._ticket = ticket
        self._cut: dict[str, DataFile | None] = {}
        """The new file of each fill, by the path of its small file: it is not written twice."""
        self._names: set[str] = set()
        """Paths that were marked for new files."""
        self.has_started = False
        """Whether its staging folder may be open, and its markers stored."""

    async def entry_without(self, entry: LogEntry, lost: Collection[Fill], fencer: Fencer) -> LogEntry:
        """Return the entry without these fills: their small files stay, and their new rows are in files of their own.

        The files that were to replace them are deleted on return. May be called again after it has failed.

        Raises:
            RolledBack: another writer has ended the job.
            Unavailable: storage did not accept a file, or did not return the old one.
        """
        self.has_started = True
        await self._handle.backend.open_staging(recut_folder(self._ticket.instant))
        await self._lease.check_log()
        lost_files = files_of(lost, entry.added)
        for fill in lost:
            if fill.old.path not in self._cut:
                self._cut[fill.old.path] = await self._own_file(fill, [lost_files[path] for path in fill.paths])
        cut = [file for fill in lost if (file := self._cut[fill.old.path]) is not None]
        kept = {file.path for file in self._cut.values() if file is not None}
        fenced = await fencer.fence({*lost_files, *self._names}, keep=kept)
        added = [*(file for file in entry.added if file.path not in lost_files), *cut]
        stays = {fill.old.path for fill in lost}
        return replace(
            entry,
            nonce=new_nonce(),
            added=tuple(sorted(added, key=lambda file: file.path)),
            removed=tuple(file for file in entry.removed if file.path not in stays),
            fenced=tuple(sorted({*entry.fenced, *fenced})),
        )

    async def _own_file(self, fill: Fill, files: Sequence[DataFile]) -> DataFile | None:
        """Call ``_cut_file``. If it fails because another writer has ended the job, raise RolledBack."""
        try:
            return await self._cut_file(fill, files)
        except (NotFound, CorruptObject, Sealed):
            await self._lease.check_log()
            raise

    async def _cut_file(self, fill: Fill, files: Sequence[DataFile]) -> DataFile | None:
        """Return a file of the new rows in these files, which start with the old ones; None where there are none.

        Where storage gives no clear outcome, it is written again under another name.
        """
        if sum(file.rows for file in files) <= fill.old.rows:
            return None
        data = [await self._handle.backend.get(file.path) for file in files]
        tries = self._ticket.settings.publish_attempt_count
        for tried in range(1, tries + 1):
            name = await self._marked_name(fill.old.partition)
            try:
                found = await _in_thread(self._write, name, fill, list(zip(files, data, strict=True)))
            except Unavailable as error:
                if tried == tries:
                    raise
                _events.warning("fill.unclear", instant=self._ticket.instant, path=fill.old.path, reason=error)
                await anyio.sleep(tried * self._ticket.settings.publish_pause_s)
            else:
                _events.info("fill.recut", instant=self._ticket.instant, path=fill.old.path, rows=found.rows)
                return found
        raise AssertionError

    async def _marked_name(self, partition: str) -> str:
        name = new_file_name(instant=self._ticket.instant, task=0, stage=0, attempt=0)
        path = DataFile(partition, name, 0, 0).path
        self._names.add(path)
        await create_direct(self._handle.backend, self._ticket.instant, [path], self._lease.check_log)
        return name

    def _write(self, name: str, fill: Fill, sources: Sequence[tuple[DataFile, bytes]]) -> DataFile:
        """Write the file. Blocking."""
        once = replace(self._ticket.settings, publish_attempt_count=1)  # a further name has to be marked first
        ticket = replace(self._ticket, staging=recut_folder(self._ticket.instant), settings=once)
        backend, partition = self._handle.backend, fill.old.partition
        file: OpenFile | None = None
        footer = FooterSize.of(ticket.schema)
        try:
            for rows in _row_groups(_beyond(fill.old.rows, sources, ticket.schema), ticket):
                file = file or OpenFile(ticket, backend, partition, lambda _: name, first=rows, footer=footer)
                file.write(rows)
            assert file is not None, "there are new rows"
            file.close()
            return file.put()
        except BaseException:
            if file is not None:
                file.abandon()
            raise


def _row_groups(batches: Iterable[pa.RecordBatch], ticket: WriteTicket) -> Iterator[pa.Table]:
    """Yield the same rows, in batches as large as those that a task encodes."""
    buffer = RowBuffer(row_group_bytes=ticket.row_group_bytes, buffer_bytes=ticket.settings.buffer_bytes)
    for batch in batches:
        buffer.append(0, batch)
        if buffer.due() is not None:
            yield buffer.take(0)
    for number in buffer.remaining():
        yield buffer.take(number)


def _beyond(count: int, sources: Sequence[tuple[DataFile, bytes]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows after the first ``count``."""
    for file, data in sources:
        for batch in batches_of(data, file, schema):
            skipped = min(count, batch.num_rows)
            count -= skipped
            if skipped < batch.num_rows:
                yield batch.slice(skipped)
