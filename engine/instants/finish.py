"""Post-commit steps of a decided instant. Idempotent; any process may run them."""

from collections.abc import Callable, Collection

import anyio

from tallymark.backends.contract import Backend
from tallymark.backends.events import EventLog
from tallymark.engine.instants.project import project, project_again
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.markers.segment import marker_folder
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.lease import heartbeat_path
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.timeline.reservation import OPEN_FOLDER, Reservation
from tallymark.engine.timeline.seal import seal_path

_events = EventLog(__name__)

Progress = Callable[[int, int], None]
"""Called with the number of files deleted so far, and the number to delete."""

DELETE_BATCH = 1000
"""Files deleted per call: what S3 deletes with one request. Progress is reported after each call."""


async def finish(
    handle: TableHandle,
    properties: TableProperties,
    reservation: Reservation,
    *,
    objects: Collection[str] | None = None,
    is_projected: bool = False,
) -> None:
    """Complete the projection, delete what the entry replaced, then the instant's bookkeeping, its reservation last.

    ``objects`` as in ``drop_bookkeeping``. ``is_projected``: this process has put every file of its projection.
    """
    instant = reservation.instant
    decided = handle.log.history.decided(instant)
    assert decided is not None, "an open instant is rolled back, not finished"
    if not is_projected:
        await project(handle, properties, decided.position)
        await project_again(handle, properties, handle.log.history.entry_of(decided))
    deleted = await delete_replaced(handle, properties, decided.position)
    await drop_bookkeeping(handle, instant, objects=objects)
    _events.info("instant.finished", instant=instant, deleted=deleted)


async def delete_replaced(
    handle: TableHandle, properties: TableProperties, position: int, *, progress: Progress | None = None
) -> int:
    """Delete the files that the entry at a position has expired, in batches, and return how many they were.

    ``progress`` is called after each batch.
    """
    history = await handle.log.reach(position - 1)
    if history.entry(position).kind == "clean":
        history = await handle.log.reach_replaced(history.cleaned(position))
    paths = [file.path for file in _expired_files(history, properties, position)]
    for done in range(0, len(paths), DELETE_BATCH):
        batch = paths[done : done + DELETE_BATCH]
        await handle.backend.delete(batch)
        if progress is not None:
            progress(done + len(batch), len(paths))
    return len(paths)


def _expired_files(history: History, properties: TableProperties, position: int) -> tuple[DataFile, ...]:
    """Return the files that the entry expires: with ``readers="directory"`` those that a commit replaced; with
    ``"table"`` only a clean expires files.
    """
    if history.entry(position).kind == "clean":
        return history.files_expired_by(position)
    if properties.readers == "table":
        return ()
    return tuple(file for member in history.members_at(position) for file in member.removed)


async def drop_bookkeeping(handle: TableHandle, instant: str, *, objects: Collection[str] | None = None) -> None:
    """Delete markers, seal, heartbeat and the reservation.

    While the reservation exists, another writer finds it and completes these steps. It is the last object of the same
    request as the rest: what remains if the store stops in the middle is found by the next writer's listing.

    ``objects`` are all objects in the instant's folder, where the caller knows them; None: the folder is listed.
    Objects that arrive later, by a put of a refused task or of an abandoned request, are deleted by the next clean.
    """
    backend = handle.backend
    if objects is None:  # otherwise the caller has closed the staging folder of its tasks, and used no other
        await close_staging(backend, instant)
    started = anyio.current_time()
    if objects is None:
        objects = [entry.path async for entry in backend.list(marker_folder(instant))]
    await backend.delete([*sorted(objects), seal_path(instant), heartbeat_path(instant), f"{OPEN_FOLDER}/{instant}"])
    _events.info("markers.deleted", instant=instant, objects=len(objects), seconds=anyio.current_time() - started)


async def close_staging(backend: Backend, instant: str) -> None:
    """Close the instant's staging folders: afterwards no task can publish a file that was staged."""
    for folder in (staging_folder(instant), recut_folder(instant)):
        await backend.close_staging(folder)


def staging_folder(instant: str) -> str:
    """Return the folder in which the instant's tasks stage their files."""
    return f"{marker_folder(instant)}/staged"


def recut_folder(instant: str) -> str:
    """Return the folder in which its job stages the files that it rewrites after the tasks are sealed."""
    return f"{marker_folder(instant)}/recut"
