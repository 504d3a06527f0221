"""Fencing of an instant's lost files: of all marked files only those to keep exist, now and later (seal and fence)."""

import io
from collections.abc import Collection, Iterable
from dataclasses import dataclass

import msgpack
import pyarrow as pa
import pyarrow.parquet as pq

from tallymark.backends.concurrently import concurrently
from tallymark.backends.contract import Backend
from tallymark.backends.errors import AlreadyExists, NotFound
from tallymark.backends.events import EventLog
from tallymark.engine.errors import CorruptObject
from tallymark.engine.instants.finish import close_staging
from tallymark.engine.packed import unpack
from tallymark.engine.settings import CommitSettings
from tallymark.engine.tasks.file_name import is_file_of
from tallymark.engine.timeline.log import new_nonce
from tallymark.engine.timeline.seal import seal_path

_events = EventLog(__name__)

FENCE_FOLDER = ".hoodie/.tallymark/fence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fencer:
    """Ends the writing of one instant's tasks. Every method is idempotent, and any process may call it."""

    backend: Backend
    instant: str
    schema: pa.Schema
    settings: CommitSettings

    async def close(self) -> None:
        """Seal the instant and close its staging directories. To be called before the markers are read.

        Afterwards no task can publish a file out of staging, and a task refuses its own direct marker, since it checks
        for the seal after its put. Direct markers are possible where there is a service, too: a task that cannot reach
        it puts its markers itself, without a report.
        """
        await self.backend.put(seal_path(self.instant), b"")
        await close_staging(self.backend, self.instant)

    async def fence(self, marked: Iterable[str], *, keep: Collection[str]) -> tuple[str, ...]:
        """On return none of the marked paths holds rows, or ever will, but for those kept.

        Marked paths that are not data files of the instant are left alone, with an error event: a marker deletes
        nothing but what its own instant may have written.

        Returns the paths that are fenced. Where files cannot be renamed into place, an empty file occupies the name of
        a lost attempt, so that the attempt's own put fails. Where they can, ``close`` has stopped all attempts.
        """
        lost = own_paths(self.instant, sorted(set(marked) - set(keep)), source="markers")
        if self.backend.has_staging:
            await self.backend.delete(lost)
            return ()
        if not lost:
            return ()
        # before the first of them: a fence that is on no list would stay permanently
        await self.backend.put(fence_path(self.instant, new_nonce()), msgpack.packb(lost))
        fence = fence_bytes(self.schema)
        fenced: list[str] = []

        async def put_fence(path: str) -> None:
            try:
                await self.backend.put_new(path, fence)
            except AlreadyExists:
                if not await self._is_fence(path):
                    await self.backend.delete([path])  # its one put has landed: nothing can come after it
                    return
            fenced.append(path)

        await concurrently(put_fence, lost, limit=self.settings.concurrency)
        return tuple(sorted(fenced))

    async def _is_fence(self, path: str) -> bool:
        try:
            return pq.read_metadata(io.BytesIO(await self.backend.get(path))).num_rows == 0
        except (NotFound, pa.ArrowInvalid):
            return False


def own_paths(instant: str, paths: Iterable[str], *, source: str) -> list[str]:
    """Return those of the paths that are data files of the instant. The others are logged as an error, and left out."""
    own: list[str] = []
    foreign: list[str] = []
    for path in paths:
        (own if is_file_of(path, instant) else foreign).append(path)
    if foreign:
        _events.error("files.foreign", instant=instant, source=source, files=len(foreign), first=foreign[0])
    return own


def fence_bytes(schema: pa.Schema) -> bytes:
    """Return a Parquet file of zero rows, which every reader accepts; an empty object would break the whole table."""
    sink = io.BytesIO()
    pq.write_table(schema.empty_table(), sink)
    return sink.getvalue()


def fence_path(instant: str, nonce: str) -> str:
    """Return the path of a list of names that may be fenced. Two processes that end one instant have one list each."""
    return f"{FENCE_FOLDER}/{instant}/{nonce}"


async def read_fences(backend: Backend, path: str) -> list[str]:
    """Return the data files of the instant on such a list; none if it was deleted. Raises CorruptObject."""
    try:
        data = await backend.get(path)
    except NotFound:
        return []
    instant = path.removeprefix(f"{FENCE_FOLDER}/").partition("/")[0]
    return own_paths(instant, decode_fences(data, source=path), source=path)


def decode_fences(data: bytes, *, source: str) -> list[str]:
    """Return the names that ``fence`` has put there. Raises CorruptObject, naming ``source``."""
    try:
        fences = unpack(data)
    except ValueError as error:
        raise _damaged(source, repr(error)) from error
    if not isinstance(fences, list) or not all(isinstance(fence, str) for fence in fences):
        raise _damaged(source, "not a list of texts")
    return fences


def _damaged(source: str, reason: str) -> CorruptObject:
    return CorruptObject(
        f"{source} is not a list of fences: {reason}; restore it from a copy, or delete it: then the fences on it, "
        "which are empty files, remain"
    )
