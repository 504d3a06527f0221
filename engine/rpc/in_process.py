"""Markers of tasks that run in the process of their job: no connection is needed."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager

import anyio
from anyio import from_thread
from anyio.abc import TaskGroup
from anyio.lowlevel import current_token

from tallymark.engine.errors import Closed, Sealed, TallymarkError
from tallymark.engine.markers.directory import MarkerDirectory
from tallymark.engine.markers.name import MarkerIo
from tallymark.engine.rpc.handshake import ServiceAddress

_served: dict[ServiceAddress, "InProcessMarkers"] = {}
"""Jobs of this process, and of its parent if it was forked."""


class InProcessMarkers:
    """A source of markers for threads of the process in whose event loop the directory is."""

    def __init__(self, tasks: TaskGroup, directory: MarkerDirectory) -> None:
        """Made in that event loop. ``tasks`` run there, and are cancelled with the job."""
        self._loop = current_token()
        self._tasks = tasks
        self._directory = directory
        self.process = os.getpid()

    def request(self, paths: Sequence[str], io: MarkerIo = "CREATE") -> Future[None]:
        """Request a marker for each data file. When the future has a result, all of them survive a crash.

        Returns at once. The future has the errors of ``MarkerDirectory.create``.
        """
        ack: Future[None] = Future()
        try:
            from_thread.run_sync(self._start, ack, paths, io, token=self._loop)
        except (RuntimeError, anyio.RunFinishedError):  # the group, or the event loop, is over
            ack.set_exception(Sealed("the job has ended; files written from now on are not committed"))
        return ack

    def _start(self, ack: Future[None], paths: Sequence[str], io: MarkerIo) -> None:
        self._tasks.start_soon(self._create, ack, paths, io)

    async def _create(self, ack: Future[None], paths: Sequence[str], io: MarkerIo) -> None:
        try:
            await self._directory.create(*paths, io=io)
        except TallymarkError as error:
            ack.set_exception(error)
        except BaseException as error:
            ack.set_exception(Closed(f"the job ended before its marker was durable: {error!r}"))
            raise
        else:
            ack.set_result(None)


@contextmanager
def serving(address: ServiceAddress, tasks: TaskGroup, directory: MarkerDirectory) -> Iterator[None]:
    """Serve the job's tasks in other threads of this process during the block."""
    _served[address] = InProcessMarkers(tasks, directory)
    try:
        yield
    finally:
        del _served[address]


def markers_here(address: ServiceAddress) -> InProcessMarkers | None:
    """Return the markers of a job of this process; None where it is another process's."""
    found = _served.get(address)
    return found if found is not None and found.process == os.getpid() else None
