"""Probe of put-if-absent, run once before a table is created on a store."""

from contextlib import suppress

from tallymark.backends.concurrently import concurrently
from tallymark.backends.contract import Backend
from tallymark.backends.errors import AlreadyExists, BackendError
from tallymark.engine.errors import UnsupportedTable
from tallymark.engine.maintenance.recovery import PROBE
from tallymark.engine.timeline.lease import HEARTBEAT_FOLDER
from tallymark.engine.timeline.log import new_nonce

TRIALS = 2
"""Names that are tried before the store is blamed. If a writer pauses for longer than a lease between its two puts,
another writer may have deleted the first object.
"""


async def check_exclusive(backend: Backend) -> str:
    """Put a new name twice concurrently and check that one put is refused. Return the name, to be deleted by ``clear``.

    The name is that of a heartbeat without a writer: if this process dies, writers of the table delete it after a
    lease, and ``is_trial`` distinguishes it from other objects before there is a table.

    Raises:
        UnsupportedTable: the store ignores put-if-absent. Nothing is left.
    """
    for _ in range(TRIALS):
        path = f"{HEARTBEAT_FOLDER}/{PROBE}{new_nonce()}"
        if await _is_refused_once(backend, path):
            return path
        await clear(backend, path)
    raise UnsupportedTable(
        f"{backend.url}: of two writers who created one object at once, both got an acknowledgement. It ignores "
        "put-if-absent (If-None-Match on S3), by which commits are decided: writers would undo each other. Keep tables "
        f"elsewhere, or update the server; 'tallymark doctor {backend.url}' has details"
    )


async def clear(backend: Backend, path: str) -> None:
    """Delete the name. If that fails, a later clean deletes it."""
    with suppress(BackendError):
        await backend.delete([path])


def is_trial(path: str) -> bool:
    """Return whether the path is that of a trial whose process died."""
    return path.startswith(f"{HEARTBEAT_FOLDER}/{PROBE}")


async def _is_refused_once(backend: Backend, path: str) -> bool:
    """Return whether one of two concurrent puts was refused. If none was, raises storage's error, if there was one."""
    refused = []

    async def create(data: bytes) -> None:
        try:
            await backend.put_new(path, data)
        except AlreadyExists:
            refused.append(data)

    try:
        await concurrently(create, (b"1", b"2"), limit=2)
    except BackendError:
        if not refused:
            raise
    return bool(refused)
