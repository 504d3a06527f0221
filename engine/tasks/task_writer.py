"""Writing of a task's rows: Arrow batches in, sized Parquet files out, each name marked before its file is started.

Path of a batch::

    conform -> partition_index -> marker_prefetch -> row_buffer -> (row group due) -> marker_prefetch -> open_file
        -> (file due) -> publisher

Where a small file is to be filled, its rows take the same path before the first new row of their partition.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial
from typing import Self

import pyarrow as pa

from tallymark.backends import Backend
from tallymark.backends.events import EventLog
from tallymark.engine.errors import InvalidRequest, TallymarkError
from tallymark.engine.partitions.index import PartitionIndex
from tallymark.engine.sizing.plan import PlannedFile
from tallymark.engine.tasks.caller import check_may_block
from tallymark.engine.tasks.changes import Changes
from tallymark.engine.tasks.event_loops import TaskLoop
from tallymark.engine.tasks.file_growth import FileGrowth, FooterSize
from tallymark.engine.tasks.file_name import new_file_name
from tallymark.engine.tasks.marker_prefetch import MarkersAhead
from tallymark.engine.tasks.marker_sources import MarkerSource, task_markers
from tallymark.engine.tasks.merge import ROW
from tallymark.engine.tasks.open_file import OpenFile, pause_thread
from tallymark.engine.tasks.publisher import Publisher
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.tasks.row_buffer import RowBuffer
from tallymark.engine.tasks.shared_backend import shared_backend
from tallymark.engine.tasks.small_file_merge import Filling, read_old_rows
from tallymark.engine.tasks.table_rows import table_rows
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.entry import DataFile

_events = EventLog(__name__)


def write_task(
    ticket: WriteTicket,
    batches: Iterable[pa.RecordBatch] | pa.Table,
    *,
    task: int,
    attempt: int = 0,
    stage: int = 0,
    planned: Sequence[PlannedFile] = (),
    backend: Backend | None = None,
) -> TaskReport:
    """Write the batches as files of the ticket's job. Blocking; for any process, and any thread but an event loop's.

    The files exist when this returns, and count when the job commits this report. Memory is bounded by the settings'
    ``buffer_bytes``, one batch and one row group being encoded, and the sinks of open files and of those that are being
    published: negligible on stores with staging. Where a store takes only whole objects, these are the bytes of each
    open file and ``publish_bytes``, or one larger file. Beyond ``spool_memory_bytes`` a file is on disk.

    ``batches`` may also be a table or a reader. ``task`` identifies the reports of one task; with ``stage`` and
    ``attempt``, all 0 or more, it is part of the files' names, which are unique in any case. ``planned`` are the files
    that this task was planned to write, at most one per partition (``WriteJob.size``): where one fills a small file,
    that file's rows are rewritten, before the new ones. A plan is advice: other rows are written, too. ``backend`` is
    needed only where the ticket's URL and options are not sufficient.

    Raises:
        InvalidRequest: the rows do not fit the ticket's schema, a partition value fits no path, a row is in a partition
            that the job may not write, or a partition has two planned files.
        CorruptObject: a small file that was to be filled cannot be read.
        Sealed: the job was committed or rolled back since.
        ServiceUnavailable: no marker within ``marker_wait_s``, not even a direct one.
        FlushFailed: storage does not accept its markers.
        Unavailable: storage did not answer.
            After any error nothing of this attempt counts; the job removes what it had published. Retry.
    """
    _check_caller(task=task, stage=stage, attempt=attempt)
    if ticket.is_committed:
        return TaskReport(instant=ticket.instant, task=task, attempt=attempt, files=())
    batches = batches.to_batches() if isinstance(batches, pa.Table) else batches
    backend = backend if backend is not None else shared_backend(ticket, "write_task")
    with closing(TaskLoop(patience_s=ticket.settings.marker_wait_s)) as loop:
        markers = task_markers(ticket, backend, loop)
        with TaskWriter(
            ticket,
            backend,
            markers.source,
            task=task,
            attempt=attempt,
            stage=stage,
            planned=planned,
            read=partial(loop.start_soon, backend.get),
        ) as writer:
            for batch in batches:
                writer.write(batch)
            report = replace(writer.finish(), direct_markers=markers.direct.count)
    _events.info(
        "task.finished",
        instant=ticket.instant,
        task=task,
        attempt=attempt,
        rows=report.rows,
        bytes=sum(file.bytes for file in report.files),
        files=len(report.files),
        filled=len(report.fills),
        direct=report.direct_markers,
        marker_wait_s=report.marker_wait_s,
        seconds=report.seconds,
    )
    return report


def _check_caller(**numbers: int) -> None:
    for name, number in numbers.items():
        if not isinstance(number, int) or number < 0:
            raise InvalidRequest(f"{name}={number!r}: give a whole number, 0 or more")
    check_may_block("write_task")


class TaskWriter:
    """One attempt of one task. Leaving its block drops the files that were not published."""

    def __init__(
        self,
        ticket: WriteTicket,
        backend: Backend,
        markers: MarkerSource,
        *,
        task: int,
        attempt: int = 0,
        stage: int = 0,
        planned: Sequence[PlannedFile] = (),
        read: Callable[[str], Future[bytes]] | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        pause: Callable[[float], object] = pause_thread,
        executor: Executor | None = None,
    ) -> None:
        """``read`` starts the reading of an object, and is needed where files are filled. ``executor`` publishes files,
        by default in threads, which start as they are needed; the writer shuts it down.
        """
        settings = ticket.settings
        self._ticket = ticket
        self._backend = backend
        self._task = task
        self._attempt = attempt
        self._monotonic = monotonic
        self._pause = pause
        self._started = monotonic()
        self._footer = FooterSize.of(ticket.schema)
        self._growth = FileGrowth(ticket.max_file_bytes, ticket.row_group_bytes, self._footer)
        self._filling = Filling(planned)
        self._read = read
        self._partitions = PartitionIndex(ticket.partition_by, ticket.guard)
        self._changes = Changes(ticket, self._partitions, self._filling, self._read_old)
        self._buffer = RowBuffer(row_group_bytes=ticket.row_group_bytes, buffer_bytes=settings.buffer_bytes)
        self._markers = MarkersAhead(
            markers,
            lambda: new_file_name(instant=ticket.instant, task=task, stage=stage, attempt=attempt),
            wait_s=settings.marker_wait_s,
            monotonic=monotonic,
        )
        self._open: OrderedDict[int, OpenFile] = OrderedDict()
        """By partition, the least recently written first."""
        self._publisher = Publisher(settings, executor or ThreadPoolExecutor(settings.publish_count, "publish"))

    def write(self, batch: pa.RecordBatch) -> None:
        """Add the rows of a batch, or its changes if it has the columns of such; encode what has become due."""
        if ROW in batch.schema.names:
            self._append(self._changes.merged(batch))
            return
        rows = table_rows(batch, self._ticket)
        if not rows.num_rows:
            return
        placed = self._partitions.place(rows)
        numbers = {self._partitions.path(number): number for number in placed.partitions}
        fills = self._filling.begin(numbers)
        old_rows = self._read_old(fills) if fills else ()
        self._markers.request(path for path, number in numbers.items() if number not in self._open)
        for old, batches in old_rows:
            self._filling.took(old)
            self._append((numbers[old.partition], rows) for rows in batches)
        self._buffer.add(placed)
        self._encode_due()

    def _append(self, merged: Iterable[tuple[int, pa.RecordBatch]]) -> None:
        for number, rows in merged:
            self._buffer.append(number, rows)
            self._encode_due()

    def _read_old(self, files: Sequence[DataFile]) -> Iterator[tuple[DataFile, Iterator[pa.RecordBatch]]]:
        assert self._read is not None, "a task that fills files can read them"
        self._markers.request((old.partition for old in files), "MERGE")
        return read_old_rows(files, self._read, self._ticket.schema)

    def _encode_due(self) -> None:
        while (partition := self._buffer.due()) is not None:
            self._encode(partition)

    def finish(self) -> TaskReport:
        """Publish everything and end the task."""
        self._append(self._changes.finish())
        remaining = self._buffer.remaining()
        for partition in remaining:
            self._encode(partition, is_last=True)
            self._publish(partition, is_last=partition == remaining[-1])
        while self._open:
            self._publish(next(iter(self._open)), is_last=True)
        files = tuple(map(self._filling.published, self._publisher.finish()))
        return TaskReport(
            instant=self._ticket.instant,
            task=self._task,
            attempt=self._attempt,
            files=files,
            fills=self._filling.done,
            planned=self._filling.sizes,
            rewrites=tuple(self._changes.rewrites),
            gone=tuple(self._changes.gone),
            changes=self._changes.counts,
            unused=self._markers.unused,
            marker_wait_s=self._markers.waited_s,
            seconds=self._monotonic() - self._started,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with ExitStack() as abandoned:
            abandoned.callback(self._publisher.close)
            while self._open:
                abandoned.callback(self._open.popitem()[1].abandon)

    def _encode(self, partition: int, *, is_last: bool = False) -> None:
        rows, path = self._buffer.take(partition), self._partitions.path(partition)
        is_planned = self._filling.is_planned(path)
        while rows.num_rows:
            count = self._growth.next_rows(rows, self._open[partition].bytes if partition in self._open else 0)
            if not count:
                self._publish(partition)
                continue
            piece, rows = rows.slice(0, count), rows.slice(count)
            file = self._open_file(partition, piece)
            file.write(piece)
            needs_next = rows.num_rows or not (is_last or is_planned)
            if needs_next and file.bytes >= self._ticket.max_file_bytes / 2:
                self._markers.request([path])
            if self._growth.is_full(file.bytes, is_planned=is_planned):
                self._publish(partition)

    def _open_file(self, partition: int, rows: pa.Table) -> OpenFile:
        """Return the partition's open file, or open one for these rows."""
        if partition not in self._open:
            if len(self._open) >= self._ticket.settings.open_file_count:
                self._publish(next(iter(self._open)))
            path = self._partitions.path(partition)
            try:
                self._open[partition] = OpenFile(
                    self._ticket,
                    self._backend,
                    path,
                    self._markers.take,
                    first=rows,
                    footer=self._footer,
                    pause=self._pause,
                )
            except TallymarkError:
                self._publisher.check()  # that the job is over explains why there is no marker
                raise
        self._open.move_to_end(partition)
        return self._open[partition]

    def _publish(self, partition: int, *, is_last: bool = False) -> None:
        """Publish the partition's open file, if it has one. ``is_last``: no row of another one is left to encode."""
        if partition in self._open:
            self._publisher.add(self._open[partition], is_last=is_last and len(self._open) == 1)
            del self._open[partition]
