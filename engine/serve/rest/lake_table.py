"""One table of the lake: its documents, read now or from memory."""

import hashlib
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

import anyio

from tallymark.backends.contract import Backend
from tallymark.backends.options import StorageOptions
from tallymark.engine.documents.document import document_of
from tallymark.engine.documents.file_list import DiffDocument, FileFields, FileListDocument, PartitionListDocument
from tallymark.engine.documents.files import PartitionFields
from tallymark.engine.documents.jobs import JobsDocument, LossDocument, job_fields
from tallymark.engine.documents.markers import MarkersDocument
from tallymark.engine.documents.summary import SummaryDocument, summary_of
from tallymark.engine.documents.timeline import TimelineDocument
from tallymark.engine.errors import Closed, InvalidRequest, TableReplaced
from tallymark.engine.inspection.file_sizes import FileSizes
from tallymark.engine.inspection.status import TableStatus
from tallymark.engine.inspection.watch import InstantWatch
from tallymark.engine.lazy import Lazy
from tallymark.engine.markers.name import MarkerName, path_of
from tallymark.engine.partitions.path import partition_prefix
from tallymark.engine.serve.memory import Users
from tallymark.engine.serve.rest.kept_table import KeptTable, Version
from tallymark.engine.serve.rest.live_jobs import LiveJobs
from tallymark.engine.settings import ViewSettings
from tallymark.engine.table import Table, open_table
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.timeline.scope import is_below

T = TypeVar("T")

DIFF_ENTRIES_MAX = 1000
"""Entries that one diff reads at most, all of whose files are in memory then."""

WATCHED_BYTES = 200
"""Of a marker that was seen."""

WATCH_IDLE_S = 60.0
"""Time without a query for open instants after which the next one reads all markers again."""


def id_of(place: str) -> str:
    """Return the name of a table in paths: 64 bits of a hash of its place."""
    return hashlib.sha256(place.encode()).hexdigest()[:16]


class LakeTable:
    """Belongs to one event loop."""

    def __init__(
        self, place: str, backend: Backend, options: StorageOptions | None, views: ViewSettings, live: LiveJobs
    ) -> None:
        self.place = place
        self.id = id_of(place)
        self.users = Users()
        self._backend = backend
        self._options = options
        self._live = live
        self._kept = KeptTable(backend, options=options, views=views)
        self._watch: InstantWatch | None = None
        self._watched_at = 0.0
        self._watching = anyio.Lock()
        self._jobs: tuple[float, Lazy[JobsDocument]] | None = None
        self._heads: tuple[float, Lazy[Version]] | None = None

    @property
    def url(self) -> str:
        return self._backend.url

    @property
    def is_idle(self) -> bool:
        return self.users.is_idle

    @property
    def memory_bytes(self) -> int:
        return self._kept.memory_bytes + (0 if self._watch is None else WATCHED_BYTES * self._watch.marker_count)

    def release(self) -> None:
        """Release what can be read again, unless a request uses it."""
        if self.is_idle:
            self._kept.release()
            self._watch = None

    def close(self) -> None:
        self._kept.release()

    def fresh(self) -> Table:
        """Return the table without anything in memory: for what changes it, or reads the whole log."""
        return open_table(self.url, backend=self._backend, options=self._options)

    async def read(self, query: Callable[[KeptTable], Awaitable[T]]) -> T:
        """Return the answer of a query. It is repeated once where the table was created again, or its memory was
        released, since it was read.
        """
        with self.users.one():
            try:
                return await query(self._kept)
            except (Closed, TableReplaced):
                self._kept.release()
                return await query(self._kept)

    async def version(self, *, max_age_s: float = 0.0) -> Version:
        """Return the version now, or of a query within ``max_age_s``; concurrent callers share one query."""
        self._heads = _kept(self._heads, max_age_s, lambda: self.read(lambda table: table.version()))
        return await self._heads[1].get()

    async def timeline(self, *, after: int | None = None, last: int, within_s: float = math.inf) -> TimelineDocument:
        """Return the newest entries of the log, or the first after a position, at most ``last``: of the newest those
        that can be read in about ``within_s``. Later queries return these, and more.
        """
        entries = await self.read(lambda table: table.entries(after=after, limit=last, within_s=within_s))
        return {"url": self.url, "entries": entries}

    async def summary(self) -> SummaryDocument:
        return summary_of(self.id, self.url, await self.status())

    async def status(self) -> TableStatus:
        return await self.read(lambda table: table.status())

    async def files(
        self, *, partition: str = "", position: int | None = None, after: str = "", limit: int = 100
    ) -> FileListDocument:
        """Return the first files below a partition path at a position, of those whose path is greater than ``after``.

        Raises InvalidRequest for a partition that cannot be one, or a position that is not available.
        """
        return await self.read(partial(_files, partition=partition, position=position, after=after, limit=limit))

    async def partitions(self, *, offset: int = 0, limit: int = 100) -> PartitionListDocument:
        """Return partitions, those with the most small files first."""
        sizes = await self.read(lambda table: table.files())
        return partitions_document(self.url, sizes, offset=offset, limit=limit)

    async def diff(self, start: int, end: int) -> DiffDocument:
        """Return what the entries from one position to another have changed, by the log alone.

        Raises InvalidRequest: there is no such position, or the entries are archived.
        """
        if not 0 <= start <= end <= start + DIFF_ENTRIES_MAX:
            raise InvalidRequest(
                f"start={start}, end={end}: give positions, the earlier one first, with at most {DIFF_ENTRIES_MAX:,} "
                "entries between them"
            )
        version = await self.version()
        if end > version.position:
            raise InvalidRequest(f"position {end}: the log of {self.url} ends at {version.position}")
        added: dict[str, DataFile] = {}
        removed: dict[str, DataFile] = {}
        entries = await self.read(lambda table: table.timeline(after=start, limit=end - start)) if end > start else []
        for position, entry in entries:
            if position > end or entry.kind != "commit":
                continue
            for file in entry.removed:
                if added.pop(file.path, None) is None:
                    removed[file.path] = file
            added |= {file.path: file for file in entry.added}
        return {
            "url": self.url,
            "start": start,
            "end": end,
            "added": [_file(added[path]) for path in sorted(added)],
            "removed": [_file(removed[path]) for path in sorted(removed)],
        }

    async def jobs(self, *, max_age_s: float = 1.0) -> JobsDocument:
        """Return the open instants, as they are now or were within ``max_age_s``."""
        self._jobs = _kept(self._jobs, max_age_s, self._scan)
        return await self._jobs[1].get()

    def forget_jobs(self) -> None:
        """Scan for open instants on the next call of ``jobs``."""
        self._jobs = None

    async def _scan(self) -> JobsDocument:
        with self.users.one():
            async with self._watching:
                now = anyio.current_time()
                if self._watch is None or now - self._watched_at > WATCH_IDLE_S:
                    self._watch = await self.fresh().watch()
                try:
                    found = await self._watch.scan()
                except TableReplaced:
                    self._watch = await self.fresh().watch()
                    found = await self._watch.scan()
                self._watched_at = now
        jobs = [job_fields(each, self._live.of(self.place, each.instant)) for each in found if not each.is_over]
        return {"url": self.url, "at": datetime.now(UTC).isoformat(timespec="milliseconds"), "jobs": jobs}

    async def markers(self, instant: str, *, after: str = "", limit: int | None = None) -> MarkersDocument:
        """Return the first markers of an open instant, of those whose path is greater than ``after``.

        Raises InvalidRequest: it is not open.
        """
        lines = await self._lines(instant)
        start = bisect_right(lines, after, key=path_of)
        end = len(lines) if limit is None else start + limit
        names = [MarkerName.parse(line) for line in lines[start:end]]
        return {"url": self.url, "instant": instant, "markers": [{"path": each.path, "io": each.io} for each in names]}

    async def loss(self, instant: str) -> LossDocument:
        """Return what a rollback of an open instant would remove now. Raises InvalidRequest: it is not open."""
        lines = await self._lines(instant)
        counts = Counter(line.rpartition("/")[0] for line in lines)
        partitions = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
        return {
            "url": self.url,
            "instant": instant,
            "files": len(lines),
            "partitions": [{"partition": partition, "files": files} for partition, files in partitions],
        }

    async def _lines(self, instant: str) -> Sequence[str]:
        await self.jobs()
        if self._watch is None:
            await self.jobs(max_age_s=0)
        assert self._watch is not None
        return self._watch.markers(instant)


def partitions_document(url: str, sizes: FileSizes, *, offset: int = 0, limit: int) -> PartitionListDocument:
    page = sizes.partitions[offset : offset + limit]
    return {
        "url": url,
        "position": sizes.position,
        "partitions": [document_of(PartitionFields, each) for each in page],
        "next": offset + limit if offset + limit < len(sizes.partitions) else None,
    }


async def _files(table: KeptTable, *, partition: str, position: int | None, after: str, limit: int) -> FileListDocument:
    properties = await table.properties()
    prefix = partition_prefix(partition, () if properties is None else properties.partition_by)
    view = await table.view_at(position)
    found: list[DataFile] = []
    for each in await view.partitions():
        folder = f"{each}/" if each else ""
        if not is_below(each, prefix) or f"{folder}\U0010ffff" <= after:
            continue
        found += [file for file in await view.files(each) if file.path > after]
        if len(found) > limit:
            break
    return {
        "url": table.url,
        "position": view.position,
        "partition": prefix,
        "files": [_file(file) for file in found[:limit]],
        "next": found[limit - 1].path if len(found) > limit else None,
    }


def _file(file: DataFile) -> FileFields:
    return {"path": file.path, "rows": file.rows, "bytes": file.bytes}


def _kept(
    last: tuple[float, Lazy[T]] | None, max_age_s: float, load: Callable[[], Awaitable[T]]
) -> tuple[float, Lazy[T]]:
    """Return the last query and its time if it is not older, or has not ended, otherwise a new one."""
    now = anyio.current_time()
    if last is not None and max_age_s and (now - last[0] < max_age_s or not last[1].is_loaded):
        return last
    return now, Lazy(load)
