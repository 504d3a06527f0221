"""One Parquet file that is being written.

Owns: what the store's refusals mean for a task. Does not own: how rows become bytes (``arrow.encoding``).
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import pyarrow as pa

from tallymark.backends.contract import Backend, NewFile
from tallymark.backends.errors import AlreadyExists, NotFound, Unavailable
from tallymark.backends.events import EventLog
from tallymark.engine.arrow.encoding import parquet_writer
from tallymark.engine.arrow.field_ids import field_id
from tallymark.engine.arrow.key_range import Range, range_of, union
from tallymark.engine.arrow.plain_size import plain_bytes
from tallymark.engine.errors import CorruptObject, InvalidRequest, Sealed
from tallymark.engine.tasks.file_growth import FooterSize
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.entry import Bounds, DataFile

_events = EventLog(__name__)


def pause_thread(seconds: float) -> None:
    threading.Event().wait(seconds)


class OpenFile:
    """A file whose marker was acked. Nothing is at its path before ``put``; used by one thread at a time."""

    def __init__(
        self,
        ticket: WriteTicket,
        backend: Backend,
        partition: str,
        take: Callable[[str], str],
        *,
        first: pa.Table,
        footer: FooterSize,
        pause: Callable[[float], object] = pause_thread,
    ) -> None:
        """``take`` returns a name in the partition whose marker was acked. ``first`` are the rows of the first write,
        by which encodings are chosen; ``footer`` is of the ticket's schema; ``pause`` blocks for that many seconds.

        Raises:
            Sealed: the job is over. Otherwise what ``take`` raises.
        """
        self._take = take
        self._pause = pause
        self._file = DataFile(partition, take(partition), 0, 0)
        self._names_tried = 1
        self._instant = ticket.instant
        self._settings = ticket.settings
        self._has_staging = backend.has_staging
        self._new_file = self._begun(backend, ticket.staging)
        try:
            with self._kept():
                self._writer = parquet_writer(self._new_file.sink, ticket.schema, ticket.settings, first)
        except BaseException:
            self._new_file.abandon()
            raise
        self._rows = 0
        self._plain_bytes = 0
        self._ranged = ticket.range_field
        self._range: Range | None = None
        self._footer = footer
        self._footer_bytes = footer.schema_bytes

    @property
    def bytes(self) -> int:
        """Bytes encoded so far, with the estimated size of the footer."""
        return self._new_file.sink.tell() + self._footer_bytes

    def write(self, rows: pa.Table) -> None:
        """Encode the rows as one row group.

        Raises:
            InvalidRequest: Parquet cannot hold these values.
            Unavailable: the bytes could not be kept, as on a full disk; the attempt is lost.
        """
        try:
            with self._kept():
                self._writer.write_table(rows, row_group_size=rows.num_rows)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InvalidRequest(
                f"partition {self._file.partition!r}: Parquet cannot hold these rows ({error}); change or cast them"
            ) from error
        self._footer_bytes += self._footer.of_rows(rows)
        self._rows += rows.num_rows
        self._plain_bytes += plain_bytes(rows)
        if self._ranged is not None:
            self._range = union(self._range, range_of(rows.column(self._ranged.name)))

    def close(self) -> DataFile:
        """Encode the footer. Return the file as ``put`` is to publish it. Raises Unavailable as ``write`` does."""
        with self._kept():
            self._writer.close()
        self._file = replace(
            self._file,
            rows=self._rows,
            bytes=self._new_file.sink.tell(),
            plain_bytes=self._plain_bytes,
            bounds=()
            if self._ranged is None or self._range is None
            else (Bounds(field_id(self._ranged), *self._range),),
        )
        return self._file

    def put(self) -> DataFile:
        """Publish the closed file at its path. On return it survives a crash. May run in any thread, beside the puts of
        other files.

        Raises:
            Sealed: the job was committed or rolled back since; nothing was published.
            CorruptObject: another object is at this file's name; it was not touched.
            Unavailable: the outcome is unknown. The file can be found through its marker. Where ``rename`` may follow,
                this is raised after its pause, so that a store without answers gets fewer puts.
        """
        try:
            self._new_file.publish()
        except NotFound as error:
            raise self._sealed() from error
        except AlreadyExists as error:
            # Without staging a closing job fences the names of those who have not reported: then it is a fence.
            raise (self._taken() if self._has_staging else self._sealed()) from error
        except Unavailable:
            if self._has_another_name:
                self._pause(self._names_tried * self._settings.publish_pause_s)
            raise
        return self._file

    def rename(self, error: Unavailable) -> None:
        """Take another name, with another marker, for the same bytes, after ``put`` has raised the error: the next
        ``put`` publishes them there.

        Earlier names are neither reported as files nor returned as unused, so that the job fences them like those of
        lost attempts.

        Raises:
            Unavailable: the given error, if no other name is tried: on stores with staging, and after the last one.
                Otherwise what ``take`` of the constructor raises.
        """
        if not self._has_another_name:
            raise error
        self._names_tried += 1
        name = self._take(self._file.partition)
        _events.warning("file.renamed", instant=self._instant, path=self._file.path, name=name, reason=error)
        self._file = replace(self._file, name=name)
        self._new_file = self._new_file.again(self._file.path)

    @property
    def _has_another_name(self) -> bool:
        return not self._has_staging and self._names_tried < self._settings.publish_attempt_count

    def abandon(self) -> None:
        """Drop the file. Does nothing after ``put`` has returned."""
        with suppress(Exception):
            self._writer.close()
        self._writer.is_open = False  # else it tries once more when it is collected
        self._new_file.abandon()

    @contextmanager
    def _kept(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise Unavailable(
                f"{self._file.path} could not be written: {error}; this attempt leaves nothing"
            ) from error

    def _begun(self, backend: Backend, staging: str) -> NewFile:
        try:
            return backend.new_file(self._file.path, staging=staging)
        except NotFound as error:
            raise self._sealed() from error

    def _sealed(self) -> Sealed:
        return Sealed(f"instant {self._instant} was committed or rolled back since; {self._file.path} was dropped")

    def _taken(self) -> CorruptObject:
        return CorruptObject(
            f"something lies at {self._file.path}, a name that this task has just made; it was not touched. "
            "Look what else writes into this table"
        )
