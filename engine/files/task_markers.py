"""The markers of one task, as its ticket says: what is asked, and the threads and connections that it takes."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tallymark.backends.contract import Backend
from tallymark.engine.files.direct_markers import DirectMarkers
from tallymark.engine.files.fallback_markers import FallbackMarkers
from tallymark.engine.files.marker_source import MarkerSource
from tallymark.engine.files.task_loop import TaskLoop
from tallymark.engine.files.ticket import WriteTicket
from tallymark.engine.service.address import ServiceAddress
from tallymark.engine.service.client import client_for


@dataclass(frozen=True, slots=True)
class TaskMarkers:
    source: MarkerSource
    direct: DirectMarkers
    """What the source puts itself; nothing, unless the ticket says so or the service was out of reach."""


@contextmanager
def task_markers(ticket: WriteTicket, backend: Backend) -> Iterator[TaskMarkers]:
    """The markers that the ticket names, for the time of one task. An event loop runs only once it is needed."""
    loop = TaskLoop()
    direct = DirectMarkers(loop.start_soon, backend, ticket)
    try:
        yield TaskMarkers(_source(ticket, ticket.service, direct), direct)
    finally:
        loop.close(patience_s=ticket.settings.marker_wait_s)


def _source(ticket: WriteTicket, service: ServiceAddress | None, direct: DirectMarkers) -> MarkerSource:
    settings = ticket.settings
    if service is None:
        return direct
    if not settings.fallback:
        return client_for(service, ticket.instant, wait_s=settings.marker_wait_s)
    client = client_for(service, ticket.instant, wait_s=settings.service_patience_s)
    return FallbackMarkers(
        client,
        direct,
        instant=ticket.instant,
        outage=client.outage,
        wait_s=settings.marker_wait_s,
        pause_s=settings.service_pause_s,
    )
