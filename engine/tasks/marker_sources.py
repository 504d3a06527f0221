"""Sources of a task's markers: the job's service, the task itself, or the service with a fallback to the task.

Owns: when to fall back to direct markers and when to return. Does not own: the connection (``rpc.client``).
"""

import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from tallymark.backends.contract import Backend
from tallymark.backends.events import EventLog
from tallymark.engine.errors import Closed, Sealed, ServiceOverloaded, ServiceUnavailable, Stopped
from tallymark.engine.markers.direct import create_direct
from tallymark.engine.markers.direct_flag import DirectFlag, flag_path
from tallymark.engine.markers.name import MarkerIo
from tallymark.engine.rpc.circuit_breaker import Outage
from tallymark.engine.rpc.client import JobClient, client_for
from tallymark.engine.rpc.handshake import ServiceAddress
from tallymark.engine.rpc.in_process import markers_here
from tallymark.engine.tasks.event_loops import TaskLoop
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.log import is_archived
from tallymark.engine.timeline.seal import check_undecided, check_unsealed
from tallymark.engine.views.checkpoint_reader import Checkpoints


class MarkerSource(Protocol):
    def request(self, paths: Sequence[str], io: MarkerIo = "CREATE") -> Future[None]:
        """Request a marker for each data file; ``io`` is how the files will be written. When the future has a result,
        all markers survive a crash.

        Returns at once; callable from any thread.
        """
        ...


class StartSoon(Protocol):
    def __call__(self, act: Callable[[Sequence[str]], Awaitable[None]], paths: Sequence[str], /) -> Future[None]:
        """Run ``act(paths)`` on an event loop; return at once, with a future of its outcome."""
        ...


class DirectMarkers:
    """A ``MarkerSource`` without a service.

    Its acks follow the service's rules: the task checks for the job's seal after its own put, and is refused if the job
    may have read the markers without this one.
    """

    def __init__(
        self, start_soon: StartSoon, backend: Backend, ticket: WriteTicket, *, flag: DirectFlag | None = None
    ) -> None:
        """``flag`` is for a job with a service, which reads direct markers only if it finds the flag."""
        self._start_soon = start_soon
        self._flag = flag
        self._backend = backend
        self._instant = ticket.instant
        archived = partial(is_archived, backend, Checkpoints(backend), ticket.table)
        self._check_open = partial(check_unsealed, backend, ticket.instant, base=ticket.base, is_archived=archived)
        self._check_undecided = partial(
            check_undecided, backend, ticket.instant, base=ticket.base, is_archived=archived
        )
        self._counting = threading.Lock()
        self.count = 0
        """Markers acked so far."""

    def request(self, paths: Sequence[str], io: MarkerIo = "CREATE") -> Future[None]:
        """Request as ``MarkerSource.request``. Raises what ``start_soon`` raises."""
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
        """Delete the flag if the job is decided: its cleanup may be over. An undecided job deletes it itself."""
        try:
            await self._check_undecided()
        except Stopped:
            await self._backend.delete([flag_path(self._instant)])


_events = EventLog(__name__)


@dataclass(frozen=True, slots=True)
class _Request:
    """Markers that a caller waits for."""

    paths: Sequence[str]
    io: MarkerIo
    ack: Future[None]
    patient_until: float
    """Until when an overloaded service is retried."""


class FallbackMarkers:
    """A ``MarkerSource`` that falls back from one source to another.

    Only ServiceUnavailable, no response in time, makes it fall back. Sealed, RolledBack and Closed mean that the job is
    over, InvalidRequest and NotAuthenticated that the call is wrong, FlushFailed that storage refuses, which it would
    refuse the task as well. After ServiceOverloaded the service is requested again until ``wait_s`` is over.

    A marker that both sources have made is one marker. Either ack guarantees that the job will find it.
    """

    def __init__(
        self,
        service: MarkerSource,
        direct: MarkerSource,
        *,
        instant: str,
        outage: Outage,
        wait_s: float,
        pause_s: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """``service`` bounds its own time until ServiceUnavailable; ``wait_s`` bounds the retries of an overloaded one.
        During an outage one request every ``pause_s`` is also sent to the service; no caller waits for its response.
        ``instant`` is for the log.
        """
        self._service = service
        self._direct = direct
        self._instant = instant
        self._outage = outage
        self._wait_s = wait_s
        self._pause_s = pause_s
        self._monotonic = monotonic

    def request(self, paths: Sequence[str], io: MarkerIo = "CREATE") -> Future[None]:
        ack: Future[None] = Future()
        ack.set_running_or_notify_cancel()  # a requested marker cannot be cancelled
        now = self._monotonic()
        if not self._outage.is_on:
            self._request_service(_Request(paths, io, ack, now + self._wait_s))
            return ack
        if self._outage.is_try_due(now, pause_s=self._pause_s):
            self._service.request(paths, io).add_done_callback(self._tried)
        self._request_direct(_Request(paths, io, ack, now))
        return ack

    def _request_service(self, request: "_Request") -> None:
        self._service.request(request.paths, request.io).add_done_callback(partial(self._answered, request))

    def _answered(self, request: "_Request", answer: Future[None]) -> None:
        ack = request.ack
        match answer.exception():
            case None:
                self._reached()
                ack.set_result(None)
            case ServiceOverloaded() if self._monotonic() < request.patient_until:
                self._request_service(request)
            case ServiceOverloaded() as error:
                ack.set_exception(error)
            case ServiceUnavailable() as error:
                self._missed(error)
                self._request_direct(request)
            case error:
                ack.set_exception(error)

    def _tried(self, answer: Future[None]) -> None:
        if answer.exception() is None:
            self._reached()

    def _reached(self) -> None:
        if self._outage.end():
            _events.info("markers.recovered", instant=self._instant)

    def _missed(self, error: ServiceUnavailable) -> None:
        if self._outage.begin(self._monotonic(), pause_s=self._pause_s):
            _events.warning("markers.fallback", instant=self._instant, reason=error)

    def _request_direct(self, request: "_Request") -> None:
        try:
            answer = self._direct.request(request.paths, request.io)
        except Exception as error:  # raised in a callback it would be lost
            request.ack.set_exception(error)
        else:
            answer.add_done_callback(partial(_pass_on, request.ack))


def _pass_on(ack: Future[None], answer: Future[None]) -> None:
    if answer.cancelled():
        ack.set_exception(Closed("the task ended before its marker was durable"))
    elif (error := answer.exception()) is not None:
        ack.set_exception(error)
    else:
        ack.set_result(None)


@dataclass(frozen=True, slots=True)
class TaskMarkers:
    source: MarkerSource
    direct: DirectMarkers
    """The direct part of the source: used if the ticket has no service, or while the service is unreachable."""


def task_markers(ticket: WriteTicket, backend: Backend, loop: TaskLoop) -> TaskMarkers:
    """Return the marker source of the ticket, for one task with this event loop."""
    if ticket.service is None:
        direct = DirectMarkers(loop.start_soon, backend, ticket)
        return TaskMarkers(direct, direct)
    here = markers_here(ticket.service)
    if here is not None:
        return TaskMarkers(here, DirectMarkers(loop.start_soon, backend, ticket))
    if ticket.departure.is_closed:  # this process was forked from that of the job
        raise Sealed(f"the job of instant {ticket.instant} is being committed, and takes no tasks any more")
    client = service_client(ticket, ticket.service)
    direct = DirectMarkers(loop.start_soon, backend, ticket, flag=client.flag)
    return TaskMarkers(_with_fallback(client, direct, ticket) if ticket.settings.fallback else client, direct)


def service_client(ticket: WriteTicket, service: ServiceAddress) -> JobClient:
    """Return this process's client of the service of the ticket's job."""
    settings = ticket.settings
    patience_s = settings.service_patience_s if settings.fallback else settings.marker_wait_s
    return client_for(service, ticket.instant, wait_s=patience_s)


def _with_fallback(client: JobClient, direct: DirectMarkers, ticket: WriteTicket) -> MarkerSource:
    return FallbackMarkers(
        client,
        direct,
        instant=ticket.instant,
        outage=client.outage,
        wait_s=ticket.settings.marker_wait_s,
        pause_s=ticket.settings.service_pause_s,
    )
