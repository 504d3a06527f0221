"""Markers that a task puts itself, one object each: where there is no service, or none within reach."""

import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Protocol

from tallymark.backends.contract import Backend
from tallymark.engine.errors import Stopped
from tallymark.engine.markers.direct import create_direct
from tallymark.engine.markers.direct_flag import DirectFlag, flag_path
from tallymark.engine.markers.name import MarkerIo
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.seal import check_undecided, check_unsealed


class StartSoon(Protocol):
    def __call__(self, act: Callable[[Sequence[str]], Awaitable[None]], paths: Sequence[str], /) -> Future[None]:
        """Run ``act(paths)`` on an event loop; returns at once, with a future of its outcome."""
        ...


class DirectMarkers:
    """A ``MarkerSource`` that asks nobody. Its acks obey the rules of the service's: the author of a marker looks for
    the job's seal after its own put, and is refused if the job can have read the markers without it.
    """

    def __init__(
        self, start_soon: StartSoon, backend: Backend, ticket: WriteTicket, *, flag: DirectFlag | None = None
    ) -> None:
        """``flag`` is for a job with a service, which expects no direct markers unless it finds the flag."""
        self._start_soon = start_soon
        self._flag = flag
        self._backend = backend
        self._instant = ticket.instant
        self._check_open = partial(check_unsealed, backend, ticket.instant, base=ticket.base)
        self._check_undecided = partial(check_undecided, backend, ticket.instant, base=ticket.base)
        self._counting = threading.Lock()
        self.count = 0
        """Markers acked so far."""

    def ask(self, paths: Sequence[str], io: MarkerIo = "CREATE") -> Future[None]:
        """As of ``MarkerSource``. Raises what ``start_soon`` raises."""
        return self._start_soon(partial(self._put, io), tuple(paths))

    async def _put(self, io: MarkerIo, paths: Sequence[str]) -> None:
        if self._flag is not None:
            await self._flag.put(self._backend, self._instant)
        try:
            await create_direct(self._backend, self._instant, paths, self._check_open, io=io)
        except Stopped:
            if self._flag is not None:
                await self._drop_late_flag()
            raise
        with self._counting:
            self.count += len(paths)

    async def _drop_late_flag(self) -> None:
        """A job that is not decided yet drops the flag with all else; one that is may have passed by here already."""
        try:
            await self._check_undecided()
        except Stopped:
            await self._backend.delete([flag_path(self._instant)])
