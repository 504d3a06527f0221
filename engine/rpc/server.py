"""The driver's server, which tasks ask for markers, and for what partitions hold.

Owns: where is listened, and the keys of jobs. Does not own: who may connect (``connections``), nor what is answered
(``answering``), nor how markers are made or what a view is; it is given a callable for each.
"""

import ipaddress
import socket
from dataclasses import dataclass

import anyio
from anyio.abc import SocketAttribute, SocketListener, TaskStatus

from tallymark.engine.errors import Closed, InvalidRequest, Stopped
from tallymark.engine.rpc.address import ServiceAddress
from tallymark.engine.rpc.connections import Connections
from tallymark.engine.rpc.dispatcher import ServiceCounts
from tallymark.engine.rpc.handler import BlocksAtHand, CreateEach, LookUpAt, Work
from tallymark.engine.rpc.handshake import job_key
from tallymark.engine.settings import ServiceSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceStatistics:
    """A reading of a server. All but ``connections`` and ``inflight`` count from its making."""

    connections: int
    """Open now, authenticated or not yet."""
    refused_connections: int
    """Beyond the limit, too slow, or without the key of a job."""
    requests: int
    inflight: int
    """Requests over those connections that are not answered yet."""
    names: int
    look_ups: int
    refusals: int
    """Requests answered with an error."""


class JobServer:
    """Answers tasks while ``run`` runs. A task can only name markers of the job whose key it holds."""

    def __init__(
        self,
        secret: bytes,
        settings: ServiceSettings,
        create_each: CreateEach,
        *,
        look_up: LookUpAt | None = None,
        at_hand: BlocksAtHand | None = None,
        farewell: Stopped | None = None,
    ) -> None:
        """``secret``: at least 32 random bytes that stay in this process. Without ``look_up`` none is answered;
        ``at_hand`` answers faster what it would.

        ``farewell`` is what every client is told when ``run`` ends, if that is the end of the jobs, too: without it
        clients go on dialling, as after a restart, until their patience ends.

        Raises:
            InvalidRequest: the secret is too short, or the settings name no host that tasks could connect to.
        """
        job_key(secret, "")
        if settings.advertised_host is None and _is_every_interface(settings.host):
            raise InvalidRequest(
                f"setting host={settings.host!r} listens on all interfaces and is no address to connect to; "
                "set advertised_host to the address that tasks reach this machine by"
            )
        self._secret = secret
        self._settings = settings
        self._work = Work(create_each, look_up, at_hand)
        self._farewell = farewell
        self._counts = ServiceCounts()
        self._bound: tuple[str, int] | None = None

    async def run(self, *, task_status: TaskStatus[tuple[str, int]] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled; reports the bound host and port as started.

        When this has ended every connection is closed, and who waits for an answer sees that.

        Raises:
            InvalidRequest: the host or the port cannot be listened on.
        """
        listeners = await self._listen()
        try:
            self._bound = _bound_address(listeners[0])
            task_status.started(self._bound)
            connections = Connections(self._secret, self._settings, self._work, self._counts, self._farewell)
            await connections.run([_raw(listener) for listener in listeners])
        finally:
            self._bound = None
            for listener in listeners:
                with anyio.CancelScope(shield=True):
                    await listener.aclose()

    def address(self, instant: str) -> ServiceAddress:
        """Return what a task of this instant's job needs to ask here. Raises Closed unless ``run`` has started."""
        if self._bound is None:
            raise Closed("the marker service is not running; take addresses between the start and the end of run()")
        host, port = self._bound
        return ServiceAddress(self._settings.advertised_host or host, port, job_key(self._secret, instant))

    def statistics(self) -> ServiceStatistics:
        counts = self._counts
        return ServiceStatistics(
            connections=counts.connections,
            refused_connections=counts.refused_connections,
            requests=counts.requests,
            inflight=counts.inflight,
            names=counts.names,
            look_ups=counts.look_ups,
            refusals=counts.refusals,
        )

    async def _listen(self) -> list[SocketListener]:
        settings = self._settings
        try:
            listener = await anyio.create_tcp_listener(local_host=settings.host, local_port=settings.port)
        except OSError as error:
            raise InvalidRequest(
                f"cannot listen on {settings.host}:{settings.port}: {error}; set host and port of ServiceSettings "
                "to an address of this machine and a free port (0 takes any)"
            ) from error
        return [each for each in listener.listeners if isinstance(each, SocketListener)]


def _is_every_interface(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def _bound_address(listener: SocketListener) -> tuple[str, int]:
    host, port, *_ = _raw(listener).getsockname()
    return host, port


def _raw(listener: SocketListener) -> socket.socket:
    raw = listener.extra(SocketAttribute.raw_socket)  # noqa: S610  # no Django here
    assert isinstance(raw, socket.socket)
    return raw
