"""Where a task's markers come from: the job's service, or the task itself."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from functools import partial
from typing import Protocol

from anyio.from_thread import BlockingPortal, start_blocking_portal

from tallymark.backends.contract import Backend
from tallymark.engine.files.ticket import WriteTicket
from tallymark.engine.markers.direct import create_direct
from tallymark.engine.service.client import client_for
from tallymark.engine.timeline.seal import check_unsealed


class MarkerSource(Protocol):
    def ask(self, paths: Sequence[str]) -> Future[None]:
        """Ask for a marker of each data file. When the future has a result, all of them survive a crash.

        Returns at once; may be called from any thread.
        """
        ...


@contextmanager
def marker_source(ticket: WriteTicket, backend: Backend) -> Iterator[MarkerSource]:
    """The source that the ticket names, for the time of one task."""
    if ticket.service is not None:
        yield client_for(ticket.service, ticket.instant, wait_s=ticket.settings.marker_wait_s)
    else:
        with start_blocking_portal("trio") as portal:
            source = _DirectMarkers(portal, backend, ticket)
            try:
                yield source
            finally:
                source.close()


class _DirectMarkers:
    """One object for each marker, put by this task on an event loop of its own."""

    def __init__(self, portal: BlockingPortal, backend: Backend, ticket: WriteTicket) -> None:
        self._portal = portal
        self._backend = backend
        self._instant = ticket.instant
        self._check_open = partial(check_unsealed, backend, ticket.instant, base=ticket.base)
        self._wait_s = ticket.settings.marker_wait_s
        self._pending: set[Future[None]] = set()

    def ask(self, paths: Sequence[str]) -> Future[None]:
        ack: Future[None] = self._portal.start_task_soon(
            create_direct, self._backend, self._instant, paths, self._check_open
        )
        self._pending.add(ack)
        ack.add_done_callback(self._pending.discard)
        return ack

    def close(self) -> None:
        """Let markers under way land, within the bound, so that the job finds them; then stop."""
        wait(list(self._pending), timeout=self._wait_s)
        self._portal.call(self._portal.stop, True)
