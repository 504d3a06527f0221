"""The markers of one task, as its ticket says: who is asked, and the connection that it takes."""

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


def task_markers(ticket: WriteTicket, backend: Backend, loop: TaskLoop) -> TaskMarkers:
    """The markers that the ticket names, for the time of one task, whose event loop this is."""
    direct = DirectMarkers(loop.start_soon, backend, ticket)
    return TaskMarkers(_source(ticket, ticket.service, direct), direct)


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
