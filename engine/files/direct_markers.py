"""Markers that a task puts itself, one object each: where there is no service, or none within reach."""

import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Protocol

from tallymark.backends.contract import Backend
from tallymark.engine.files.ticket import WriteTicket
from tallymark.engine.markers.direct import create_direct
from tallymark.engine.markers.name import MarkerIo
from tallymark.engine.timeline.seal import check_unsealed


class StartSoon(Protocol):
    def __call__(self, act: Callable[[Sequence[str]], Awaitable[None]], paths: Sequence[str], /) -> Future[None]:
        """Run ``act(paths)`` on an event loop; returns at once, with a future of its outcome."""
        ...


class DirectMarkers:
    """A ``MarkerSource`` that asks nobody. Its acks obey the rules of the service's: the author of a marker looks for
    the job's seal after its own put, and is refused if the job can have read the markers without it.
    """

    def __init__(self, start_soon: StartSoon, backend: Backend, ticket: WriteTicket) -> None:
        self._start_soon = start_soon
        self._backend = backend
        self._instant = ticket.instant
        self._check_open = partial(check_unsealed, backend, ticket.instant, base=ticket.base)
        self._counting = threading.Lock()
        self.count = 0
        """Markers acked so far."""

    def ask(self, paths: Sequence[str], io: MarkerIo = "CREATE") -> Future[None]:
        """As of ``MarkerSource``. Raises what ``start_soon`` raises."""
        return self._start_soon(partial(self._put, io), tuple(paths))

    async def _put(self, io: MarkerIo, paths: Sequence[str]) -> None:
        await create_direct(self._backend, self._instant, paths, self._check_open, io=io)
        with self._counting:
            self.count += len(paths)
