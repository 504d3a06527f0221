"""A stream: many callers append rows, which share files and commits; each call returns when its rows are committed.

Path of rows: ``append`` conforms them and adds them to the batch that gathers; a worker takes the batch when a flush is
due, writes it as one task of a separate job, commits, and answers all calls. The next worker gathers in that time; its
commit follows in order.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from io import BytesIO

import anyio
import pyarrow as pa
from anyio import to_thread

from tallymark.backends.contract import Backend
from tallymark.backends.events import EventLog
from tallymark.engine.arrow.encoding import parquet_writer
from tallymark.engine.errors import Closed, InvalidRequest, TallymarkError, TryAgain
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.partitions.index import PartitionIndex
from tallymark.engine.settings import StreamSettings
from tallymark.engine.streams.batch import Append, StreamBatch
from tallymark.engine.tasks.table_rows import rows_in
from tallymark.engine.tasks.task_writer import write_task
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.properties import TableProperties

_events = EventLog(__name__)

OpenJob = Callable[[], AbstractAsyncContextManager[WriteJob]]


class Stream:
    """Made by ``Table.stream``, whose block ends it: what waits by then is committed first. Of one event loop."""

    def __init__(
        self,
        open_job: OpenJob,
        backend: Backend,
        properties: TableProperties,
        history: Callable[[], History],
        settings: StreamSettings,
        committed: Callable[[Sequence[DataFile]], None],
    ) -> None:
        """``history`` is that of the log as it was read last. ``committed`` is called with the files of each flush."""
        self._open_job = open_job
        self._backend = backend
        self._properties = properties
        self._history = history
        self._settings = settings
        self._committed = committed
        self._batch = StreamBatch()
        """The one that gathers."""
        self._previous: StreamBatch | None = None
        """The last one that was taken."""
        self._held_bytes = 0
        self._entering = anyio.Lock(fast_acquire=True)
        self._released = anyio.Event()
        self._arrived = anyio.Event()
        self._filled = anyio.Event()
        self._leading = anyio.Lock()
        self._last_start = -float("inf")
        self._pending: dict[str, list[Append]] = {}
        """By producer, appends that are not settled, in order."""
        self._is_closing = False
        self.ended = anyio.Event()
        """Set when everything that was appended is settled, after ``close``."""
        self.flushes = 0
        """Flushes that were started."""

    async def append(
        self, rows: pa.RecordBatch | pa.Table, *, producer: str | None = None, sequence: int | None = None
    ) -> int:
        """Return the position of the log at which the rows are committed.

        Rows of one caller are committed in the order of its calls. A caller that stops waiting leaves its rows to
        their flush. Calls wait while ``StreamSettings.max_bytes`` are held.

        ``producer`` and ``sequence`` make a repeated call harmless, across restarts, too: a producer numbers its calls
        in ascending order, from 0 on, and what was committed under a number, or a later one, is not written again; the
        call then returns the newest position that is known. Only one process at a time may use a name.

        Raises:
            InvalidRequest: the rows do not fit the table, or hold more than ``max_bytes``; or a sequence does not
                follow the producer's last one. No other call is affected, also where it shows only at the flush.
            Closed: the stream has ended.
            TryAgain, Unavailable: storage did not take the commit. Nothing of it counts; append again.
            CommitUnknown: storage did not answer. With a producer, append again with the same number.
        """
        self._check_open()
        append = self._append_of(rows, producer, sequence)
        if append.producer is not None:
            if append.sequence <= self._history().last_of(append.producer):
                return self._history().head
            if (twin := self._twin_of(append)) is not None:
                return await twin.committed()
        await self._enter(append)
        return await append.committed()

    def _append_of(self, rows: pa.RecordBatch | pa.Table, producer: str | None, sequence: int | None) -> Append:
        batch = _one_batch(rows)
        if (producer is None) is not (sequence is None):
            raise InvalidRequest("producer and sequence are given together: the name, and a number that ascends")
        if sequence is not None and (not isinstance(sequence, int) or isinstance(sequence, bool) or sequence < 0):
            raise InvalidRequest(f"sequence={sequence!r}: give a whole number, 0 or more")
        rows = batch if batch.schema.equals(self._properties.schema) else self._conformed(batch)
        size = rows.nbytes
        if size > self._settings.max_bytes:
            raise InvalidRequest(
                f"the rows of one append take {size} bytes, and max_bytes={self._settings.max_bytes}; append fewer at "
                "once, or raise the setting"
            )
        return Append(rows, size, producer, sequence or 0)

    def _conformed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows in the table's schema. Raises InvalidRequest for those that the table does not take."""
        properties = self._properties
        conformed = rows_in(properties.schema, rows, partition_by=properties.partition_by, partition=None)
        PartitionIndex(properties.partition_by).place(conformed)
        return conformed

    def _twin_of(self, append: Append) -> Append | None:
        """Return the pending append of the same number. Raises InvalidRequest for one that is out of order."""
        assert append.producer is not None, "only those of a producer have twins"
        pending = self._pending.get(append.producer, [])
        for other in pending:
            if other.sequence == append.sequence:
                return other
        if pending and pending[-1].sequence > append.sequence:
            raise InvalidRequest(
                f"producer {append.producer!r} appends sequence {append.sequence} after {pending[-1].sequence}: "
                "numbers ascend with the calls"
            )
        return None

    async def _enter(self, append: Append) -> None:
        """Add the append to the batch that gathers, once there is room for it."""
        if append.producer is not None:
            self._pending.setdefault(append.producer, []).append(append)
        try:
            async with self._entering:
                while self._held_bytes and self._held_bytes + append.size > self._settings.max_bytes:
                    self._released = anyio.Event()
                    await self._released.wait()
                self._check_open()
                self._held_bytes += append.size
                self._batch.add(append)
        except BaseException:
            self._forget(append)
            raise
        self._arrived.set()
        if self._batch.size >= self._settings.flush_bytes:
            self._filled.set()

    def _forget(self, append: Append) -> None:
        if append.producer is not None:
            pending = self._pending[append.producer]
            pending.remove(append)
            if not pending:
                del self._pending[append.producer]

    def _check_open(self) -> None:
        if self._is_closing:
            raise Closed("the stream has ended; what was not acknowledged may not be committed")

    async def run(self) -> None:
        """Flush what is appended until ``close`` was called and nothing waits."""
        try:
            async with anyio.create_task_group() as tasks:
                for _ in range(self._settings.worker_count):
                    tasks.start_soon(self._work)
        finally:
            self._is_closing = True
            self._settle(self._take(), Closed("the stream was cancelled; its rows are not committed"))
            self.ended.set()

    def close(self) -> None:
        """Refuse further rows, and let ``run`` end when the others are committed."""
        self._is_closing = True
        self._arrived.set()
        self._filled.set()

    async def _work(self) -> None:
        while await self._flush_next():
            pass

    async def _flush_next(self) -> bool:
        """Flush the batch that gathers when it is due. Return False if the stream has ended."""
        await self._leading.acquire()
        batch: StreamBatch | None = None
        try:
            while not self._batch.appends:
                if self._is_closing:
                    return False
                self._arrived = anyio.Event()
                await self._arrived.wait()
            async with self._open_job() as job:
                await self._until_due()
                previous, batch = self._previous, self._take()
                self._leading.release()
                self._settle(batch, await self._commit(job, batch, previous))
        except TallymarkError as error:
            self._fail(batch or self._take(), error)
        except Exception as error:
            _events.fault("stream.failed", url=self._backend.url)
            self._fail(batch or self._take(), TryAgain(f"the flush failed: {error!r}; its log has the traceback"))
        finally:
            if batch is None:
                self._leading.release()
            elif batch.outcome is None:
                self._settle(batch, Closed("the stream was cancelled during a flush; its rows may be committed"))
        return True

    async def _until_due(self) -> None:
        delay_s = self._last_start + self._settings.flush_interval_s - anyio.current_time()
        if delay_s > 0 and not self._is_closing:
            with anyio.move_on_after(delay_s):
                await self._filled.wait()

    def _take(self) -> StreamBatch:
        batch, self._batch = self._batch, StreamBatch()
        self._previous = batch
        self._last_start = anyio.current_time()
        self._filled = anyio.Event()
        self.flushes += 1
        return batch

    async def _commit(self, job: WriteJob, batch: StreamBatch, previous: StreamBatch | None) -> int:
        """Return the position of the batch's commit, which follows that of the one before."""
        write = partial(write_task, job.ticket, task=0, backend=self._backend)
        try:
            report = await to_thread.run_sync(write, batch.rows)
        except InvalidRequest:
            if not await to_thread.run_sync(self._refuse, batch, job.ticket):
                raise
            report = await to_thread.run_sync(partial(write, attempt=1), batch.rows)
        written = [append for append in batch.appends if append.error is None]
        if previous is not None:
            await previous.settled.wait()
            if overtaking := next((append.error for append in written if append.error is not None), None):
                raise overtaking
        result = await job.commit([report], producers=batch.producers)
        self._committed(report.files)
        return result.position

    def _refuse(self, batch: StreamBatch, ticket: WriteTicket) -> bool:
        """Let those appends fail whose rows the table does not take. Return whether there were any."""
        for append in batch.appends:
            try:
                rows = pa.Table.from_batches([self._conformed(append.rows)])
                with parquet_writer(BytesIO(), ticket.schema, ticket.settings, rows) as writer:
                    writer.write_table(rows)
            except InvalidRequest as error:
                append.error = error
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                append.error = InvalidRequest(f"Parquet cannot hold these rows ({error}); change or cast them")
        return any(append.error is not None for append in batch.appends)

    def _settle(self, batch: StreamBatch, outcome: int | TallymarkError) -> None:
        if batch.outcome is not None:
            return
        for append in batch.appends:
            self._forget(append)
        if isinstance(outcome, Exception):
            for producer, (_, last) in batch.producers.items():
                later = (append for append in self._pending.get(producer, ()) if append.sequence > last)
                for append in later:  # committed, it would pass the one that has failed
                    append.error = TryAgain(f"an earlier append of the producer has failed ({outcome}); append again")
        self._held_bytes -= batch.size
        batch.settle(outcome)
        self._released.set()

    def _fail(self, batch: StreamBatch, error: TallymarkError) -> None:
        if batch.outcome is None and batch.appends:
            _events.warning("stream.refused", url=self._backend.url, appends=len(batch.appends), reason=error)
        self._settle(batch, error)


def _one_batch(rows: pa.RecordBatch | pa.Table) -> pa.RecordBatch:
    if isinstance(rows, pa.RecordBatch):
        return rows
    if not isinstance(rows, pa.Table):
        raise InvalidRequest(f"rows is {type(rows).__name__}; give a pyarrow.RecordBatch or Table")
    batches = rows.combine_chunks().to_batches()
    return batches[0] if len(batches) == 1 else pa.RecordBatch.from_pylist([], schema=rows.schema)
