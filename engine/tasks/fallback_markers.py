"""Markers from the service, or put by the task itself while the service cannot be reached.

Owns: when to fall back and when to return. Does not own: threads, event loops, connections (``task_markers``): it is
made of futures and what is called when they are done.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial

from tallymark.backends.events import EventLog
from tallymark.engine.errors import Closed, ServiceOverloaded, ServiceUnavailable
from tallymark.engine.markers.name import MarkerIo
from tallymark.engine.rpc.circuit_breaker import Outage
from tallymark.engine.tasks.marker_source import MarkerSource

_events = EventLog(__name__)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Markers that somebody waits for."""

    paths: Sequence[str]
    io: MarkerIo
    ack: Future[None]
    patient_until: float
    """With an overloaded service."""


class FallbackMarkers:
    """A ``MarkerSource`` of two others.

    Of all that the service can answer only ServiceUnavailable makes it fall back: nobody was there in time. Sealed,
    RolledBack and Closed say that the job is over, InvalidRequest and NotAuthenticated that the call is wrong,
    FlushFailed that storage refuses, which it would refuse the task, too; ServiceOverloaded that the service is there
    and asks for patience: it is asked again until ``wait_s`` is over.

    A marker that both have made is one marker. Whoever acks it has made sure that the job will find it.
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
        """How long the service may take before it fails as ServiceUnavailable is its own affair; ``wait_s`` bounds the
        patience with an overloaded one. Of an outage every ``pause_s`` one ask goes to the service, too, and nobody
        waits for its answer. ``instant`` is for the log.
        """
        self._service = service
        self._direct = direct
        self._instant = instant
        self._outage = outage
        self._wait_s = wait_s
        self._pause_s = pause_s
        self._monotonic = monotonic

    def ask(self, paths: Sequence[str], io: MarkerIo = "CREATE") -> Future[None]:
        ack: Future[None] = Future()
        ack.set_running_or_notify_cancel()  # a marker that is asked for cannot be un-asked
        now = self._monotonic()
        if not self._outage.is_on:
            self._ask_service(_Wanted(paths, io, ack, now + self._wait_s))
            return ack
        if self._outage.is_try_due(now, pause_s=self._pause_s):
            self._service.ask(paths, io).add_done_callback(self._tried)
        self._ask_direct(_Wanted(paths, io, ack, now))
        return ack

    def _ask_service(self, wanted: "_Wanted") -> None:
        self._service.ask(wanted.paths, wanted.io).add_done_callback(partial(self._answered, wanted))

    def _answered(self, wanted: "_Wanted", answer: Future[None]) -> None:
        ack = wanted.ack
        match answer.exception():
            case None:
                self._reached()
                ack.set_result(None)
            case ServiceOverloaded() if self._monotonic() < wanted.patient_until:
                self._ask_service(wanted)
            case ServiceOverloaded() as error:
                ack.set_exception(error)
            case ServiceUnavailable() as error:
                self._missed(error)
                self._ask_direct(wanted)
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

    def _ask_direct(self, wanted: "_Wanted") -> None:
        try:
            answer = self._direct.ask(wanted.paths, wanted.io)
        except Exception as error:  # in a callback nobody else would ever hear of it
            wanted.ack.set_exception(error)
        else:
            answer.add_done_callback(partial(_pass_on, wanted.ack))


def _pass_on(ack: Future[None], answer: Future[None]) -> None:
    if answer.cancelled():
        ack.set_exception(Closed("the task ended before its marker was durable"))
    elif (error := answer.exception()) is not None:
        ack.set_exception(error)
    else:
        ack.set_result(None)
