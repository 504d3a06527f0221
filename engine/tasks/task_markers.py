"""The markers of one task, as its ticket says: who is asked, and the connection that it takes."""

from dataclasses import dataclass

from tallymark.backends.contract import Backend
from tallymark.engine.rpc.address import ServiceAddress
from tallymark.engine.rpc.client import JobClient, client_for
from tallymark.engine.tasks.direct_markers import DirectMarkers
from tallymark.engine.tasks.fallback_markers import FallbackMarkers
from tallymark.engine.tasks.marker_source import MarkerSource
from tallymark.engine.tasks.task_loop import TaskLoop
from tallymark.engine.tasks.ticket import WriteTicket


@dataclass(frozen=True, slots=True)
class TaskMarkers:
    source: MarkerSource
    direct: DirectMarkers
    """What the source puts itself; nothing, unless the ticket says so or the service was out of reach."""


def task_markers(ticket: WriteTicket, backend: Backend, loop: TaskLoop) -> TaskMarkers:
    """The markers that the ticket names, for the time of one task, whose event loop this is."""
    if ticket.service is None:
        direct = DirectMarkers(loop.start_soon, backend, ticket)
        return TaskMarkers(direct, direct)
    client = service_client(ticket, ticket.service)
    direct = DirectMarkers(loop.start_soon, backend, ticket, flag=client.flag)
    return TaskMarkers(_with_fallback(client, direct, ticket) if ticket.settings.fallback else client, direct)


def service_client(ticket: WriteTicket, service: ServiceAddress) -> JobClient:
    """This process's connection to the service of the ticket's job, whatever it is asked for."""
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
