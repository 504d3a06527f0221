"""Claims on small files that a write is filling, so that a concurrent plan does not choose the same files.

A claim is advice, not a lock: of two writes that chose one file nevertheless, the second to commit writes its new rows
into a separate file.
"""

from collections.abc import Collection

import msgpack

from tallymark.backends.concurrently import concurrently
from tallymark.backends.contract import Backend
from tallymark.backends.errors import NotFound
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.markers.segment import marker_folder
from tallymark.engine.packed import unpack
from tallymark.engine.timeline.reservation import OPEN_FOLDER


def claim_path(instant: str) -> str:
    """Return the path of an instant's claim: beside its markers, and deleted with them."""
    return f"{marker_folder(instant)}/FILLS"


async def claim(backend: Backend, instant: str, paths: Collection[str]) -> None:
    """Publish that these files are being filled; it replaces an earlier claim of the instant."""
    await backend.put(claim_path(instant), msgpack.packb(sorted(paths)))


async def claimed_by_others(handle: TableHandle, instant: str | None) -> frozenset[str]:
    """Return the files that other open instants are filling."""
    found: set[str] = set()

    async def read(other: str) -> None:
        found.update(await _claimed(handle.backend, claim_path(other)))

    open_ = [entry.path.rpartition("/")[2] async for entry in handle.backend.list(OPEN_FOLDER)]
    await concurrently(read, [other for other in open_ if other != instant], limit=handle.commit_settings.concurrency)
    return frozenset(found)


async def _claimed(backend: Backend, path: str) -> list[str]:
    """Return the files of a claim; none where it cannot be decoded, since a later release may encode it in
    another way.
    """
    try:
        paths = unpack(await backend.get(path))
    except (NotFound, ValueError):
        return []
    return [path for path in paths if isinstance(path, str)] if isinstance(paths, list) else []
