"""Direct markers: one empty object each, put by the task that writes the data file. No service is needed."""

from collections.abc import Awaitable, Callable, Sequence

from tallymark.backends.concurrently import concurrently
from tallymark.backends.contract import Backend
from tallymark.engine.errors import Stopped
from tallymark.engine.markers.flush import flush
from tallymark.engine.markers.hedge import Hedge
from tallymark.engine.markers.name import MarkerIo, marker_line
from tallymark.engine.markers.pace import Pace
from tallymark.engine.markers.segment import marker_folder
from tallymark.engine.markers.statistics import MarkerCounts
from tallymark.engine.settings import MarkerSettings


async def put_direct(
    backend: Backend,
    folder: str,
    lines: Sequence[str],
    settings: MarkerSettings,
    counts: MarkerCounts,
    hedge: Hedge | None = None,
    pace: Pace | None = None,
) -> None:
    """Return once each line is the name of an object that survives a crash.

    Raises:
        FlushFailed: at least one is not. Asking again for all of them is safe.
    """

    async def put(line: str) -> None:
        await flush(backend, f"{folder}/{line}", b"", settings, counts, hedge, pace)

    await concurrently(put, lines, limit=settings.worker_count)


async def create_direct(
    backend: Backend,
    instant: str,
    paths: Sequence[str],
    check_open: Callable[[], Awaitable[None]],
    *,
    io: MarkerIo = "CREATE",
    settings: MarkerSettings | None = None,
) -> None:
    """Mark data files without a service. On return the caller may start the files.

    ``check_open`` is awaited after the puts: a marker that arrived after the job had read its markers is refused, and
    so its data file is never written.

    Raises:
        Sealed: the instant accepts no more markers.
        RolledBack: it was rolled back.
        FlushFailed: storage did not accept a marker.
    """
    lines = [marker_line(path, io) for path in paths]
    folder = marker_folder(instant)
    await put_direct(backend, folder, lines, settings or MarkerSettings(kind="direct"), MarkerCounts())
    try:
        await check_open()
    except Stopped:
        # The files will never be started, and no other cleanup may follow.
        await backend.delete([f"{folder}/{line}" for line in lines])
        raise
