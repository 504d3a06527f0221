"""Compaction: small files of some partitions merged by one commit, which adds no rows and yields to every writer.

A compaction is an append that replaces files, as one that fills small files is. What it reads is not locked: of two
entries that replace one file the second is refused, and a compaction that is refused gives up. So that it is the second
nowhere but in a race of two requests, it starts and commits only where no other open instant may replace these files,
and claims them, so that no plan of another write fills them.

Owns: one commit. Does not own: when one is due (``due_partitions``), and which files it merges (``merge_policy``).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock

import anyio
import pyarrow as pa
from anyio import to_thread

from tallymark.backends.contract import Backend
from tallymark.backends.events import EventLog
from tallymark.engine.background import background_tasks
from tallymark.engine.errors import ConflictError, CorruptObject
from tallymark.engine.instants.open_instants import open_reservations
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.jobs.fill_claims import claimed_by_others
from tallymark.engine.jobs.result import WriteResult
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.tasks.event_loops import TaskLoop
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.tasks.small_file_merge import read_old_rows
from tallymark.engine.tasks.task_writer import write_task
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.upkeep.merge_policy import files_to_merge, merged_rewritten

_events = EventLog(__name__)

OpenJob = Callable[[], AbstractAsyncContextManager[WriteJob]]

HARMLESS = frozenset({"append", "clean"})
"""Operations of instants beside which files may be merged. An append replaces no file but those that it has claimed."""

MAX_FILE_SHARE = 5 / 4
"""Size at which a merged file is finished, in targets: one that reaches the target is rarely larger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """Result of one call of ``compact``."""

    idle: frozenset[str] = frozenset()
    """Partitions in which nothing was to be merged."""
    result: WriteResult | None = None
    """The commit; None where nothing was merged."""
    yielded_to: str | None = None
    """The instant of another writer for which nothing was merged; an empty text where only its files show it."""


class _GoneError(Exception):
    """A file that was to be merged is missing."""


class _StoppedError(Exception):
    """The compaction was cancelled."""


async def compact(
    open_job: OpenJob,
    handle: TableHandle,
    properties: TableProperties,
    partitions: Mapping[str, bool],
    *,
    target_bytes: int,
) -> Compaction:
    """Merge small files of these partitions, at most one file per partition and a target of bytes together.

    The values are whether a partition is quiet, so that its rest is merged, too. Where ``idle`` has all partitions,
    nothing is left to do; otherwise another call may do more. ``open_job`` opens jobs that append, and whose tickets
    do not leave this process.

    Raises:
        CorruptObject: a small file cannot be read.
        TallymarkError: storage does not answer, or refuses. Nothing of the compaction counts.
    """
    merges = await _merges(handle, properties, partitions, target_bytes)
    idle = frozenset(partitions) - merges.keys()
    if not merges:
        return Compaction(idle=idle)
    if (yielded_to := await _writer_in_the_way(handle)) is not None:
        return Compaction(idle=idle, yielded_to=yielded_to)
    started = anyio.current_time()
    chosen = _up_to(merges, target_bytes)
    async with open_job() as job:
        if job.ticket.table != properties.id:
            return Compaction(idle=idle, yielded_to="")
        await job.claim(file for files in chosen.values() for file in files)
        if (lost := await _lost(handle, properties, job.instant, chosen)) is not None:
            return Compaction(idle=idle, yielded_to=lost)
        try:
            reports = await _written(job.ticket, handle.backend, list(chosen.values()))
            if (lost := await _lost(handle, properties, job.instant, chosen)) is not None:
                return Compaction(idle=idle, yielded_to=lost)
            result = await job.commit(reports)
        except ConflictError as error:
            return Compaction(idle=idle, yielded_to=error.winner)
        except _GoneError:
            return Compaction(idle=idle, yielded_to="")
    _events.info(
        "compaction.committed",
        url=handle.backend.url,
        instant=result.instant,
        position=result.position,
        partitions=len(chosen),
        merged=result.removed_files,
        files=result.files,
        bytes=result.bytes,
        seconds=anyio.current_time() - started,
    )
    return Compaction(idle=idle, result=result)


async def _merges(
    handle: TableHandle, properties: TableProperties, partitions: Mapping[str, bool], target_bytes: int
) -> dict[str, tuple[DataFile, ...]]:
    """Return the files to be merged in each of these partitions; partitions without any are left out."""
    live = await _live(handle, properties, partitions)

    def chosen(taken: frozenset[str]) -> dict[str, tuple[DataFile, ...]]:
        free: dict[str, list[DataFile]] = {partition: [] for partition in partitions}
        for file in live:
            if file.path not in taken:
                free[file.partition].append(file)
        found = {
            partition: files_to_merge(files, target_bytes=target_bytes, is_quiet=partitions[partition])
            for partition, files in free.items()
        }
        return {partition: files for partition, files in found.items() if files}

    return chosen(await claimed_by_others(handle, None)) if chosen(frozenset()) else {}  # most looks need no listing


def _up_to(merges: Mapping[str, tuple[DataFile, ...]], target_bytes: int) -> dict[str, tuple[DataFile, ...]]:
    """Return the first of the merges, and those after it with which it stays below this size."""
    found: dict[str, tuple[DataFile, ...]] = {}
    size = 0
    for partition, files in merges.items():
        size += sum(file.bytes for file in files)
        if found and size > target_bytes:
            break
        found[partition] = files
    return found


async def _live(handle: TableHandle, properties: TableProperties, partitions: Mapping[str, object]) -> set[DataFile]:
    """Return the files of these partitions now."""
    history = await handle.log.refresh()
    return set(await handle.view(properties).at(history.head).files_of(partitions))


async def _lost(
    handle: TableHandle, properties: TableProperties, instant: str, chosen: Mapping[str, Sequence[DataFile]]
) -> str | None:
    """Return the instant of a writer that may replace these files; an empty text where one has done so. None: none."""
    paths = {file.path for files in chosen.values() for file in files}
    if not paths <= {file.path for file in await _live(handle, properties, chosen)}:
        return ""
    if paths & await claimed_by_others(handle, instant):
        return ""
    return await _writer_in_the_way(handle, instant)  # last, so that few start between this check and the commit


async def _writer_in_the_way(handle: TableHandle, own: str = "") -> str | None:
    """Return the instant of an open writer that may replace any file; None where there is none."""
    others = (found for found in await open_reservations(handle) if found.instant != own)
    return next((found.instant for found in others if found.operation not in HARMLESS), None)


async def _written(ticket: WriteTicket, backend: Backend, merges: Sequence[Sequence[DataFile]]) -> list[TaskReport]:
    """Write the merged files, one after the other, in a thread. A cancellation stops it at the next row group."""
    reads = _Reads()

    async def stop_when_cancelled() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            reads.stop()

    async with background_tasks() as tasks:
        tasks.start_soon(stop_when_cancelled)
        write = partial(_write, ticket, backend, reads)
        try:
            return [await to_thread.run_sync(write, number, files) for number, files in enumerate(merges)]
        except _StoppedError:
            await anyio.sleep_forever()  # it is cancelled
            raise


class _Reads:
    """The reads of a compaction, which its event loop may stop."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._pending: set[Future[bytes]] = set()
        self._is_stopped = False

    def add(self, read: Future[bytes]) -> Future[bytes]:
        with self._lock:
            if self._is_stopped:
                read.cancel()
            else:
                self._pending.add(read)
        read.add_done_callback(self._pending.discard)
        return read

    def check(self) -> None:
        if self._is_stopped:
            raise _StoppedError

    def stop(self) -> None:
        with self._lock:
            self._is_stopped = True
            pending = list(self._pending)
        for read in pending:
            read.cancel()


def _write(ticket: WriteTicket, backend: Backend, reads: _Reads, number: int, merged: Sequence[DataFile]) -> TaskReport:
    """Write the rows of these files into one, or more where one would be too large. Blocking."""
    with closing(TaskLoop(patience_s=ticket.settings.marker_wait_s)) as loop:
        rows = _rows(lambda path: reads.add(loop.start_soon(backend.get, path)), reads.check, ticket.schema, merged)
        report = write_task(ticket, rows, task=number, backend=backend)
    partition = merged[0].partition
    if report.rows != sum(file.rows for file in merged) or {file.partition for file in report.files} != {partition}:
        raise CorruptObject(
            f"the rows of {len(merged)} files of partition {partition!r} do not belong there by their values, and are "
            "left where they are; see which writer has added them, by tallymark explain"
        )
    costs = merged_rewritten(merged, [file.bytes for file in report.files])
    files = tuple(replace(file, rewritten_bytes=cost) for file, cost in zip(report.files, costs, strict=True))
    return replace(report, files=files, rewrites=tuple(merged))


def _rows(
    read: Callable[[str], Future[bytes]], check: Callable[[], None], schema: pa.Schema, files: Sequence[DataFile]
) -> Iterator[pa.RecordBatch]:
    found = 0
    try:
        for _, batches in read_old_rows(files, read, schema):
            found += 1
            for batch in batches:
                check()
                yield batch
    except CancelledError:
        raise _StoppedError from None
    if found < len(files):
        raise _GoneError
