"""Server of the driver's service: it listens, and reads and writes all connections in one task.

``JobServer`` is what embedders use: settings, keys of jobs, statistics. ``Connections`` waits for all sockets at once.

Owns: sockets, limits, time limits. Does not own: authentication (``handshake``), the state of one connection
(``peer``), what a request does (``dispatcher`` and its ``Handler``).
"""

import ipaddress
import math
import resource
import selectors
import socket
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final, Generic, NoReturn, Protocol

import anyio
import anyio.lowlevel
from anyio.abc import SocketAttribute, SocketListener, TaskGroup, TaskStatus

from tallymark.backends.events import EventLog
from tallymark.engine.errors import Closed, InvalidRequest, Stopped
from tallymark.engine.rpc.dispatcher import ConnectionCounts, Dispatcher, Handler, ServiceCounts
from tallymark.engine.rpc.handshake import ServiceAddress, job_key
from tallymark.engine.rpc.job_peer import JobPeer
from tallymark.engine.rpc.peer import P, Peer, Send
from tallymark.engine.rpc.tcp import tune
from tallymark.engine.rpc.tls import ServerTls
from tallymark.engine.settings import ServiceSettings

READ: Final = selectors.EVENT_READ
WRITE: Final = selectors.EVENT_WRITE

_ACCEPT_PAUSE_S = 0.1

_AT_ONCE = 256
"""Sockets that are read, or requests that are started, between two passes of the loop; each takes 20 to 100 us."""

_ACCEPTED_PART = 1 / 8
"""Of ``handshake_count``, at most accepted between two passes of the loop: a task that authenticates while strangers
connect as fast as they can gets this many passes, and needs two or three."""

DESCRIPTOR_SHARE = 0.5
"""Of the descriptors that the process may open, at most for connections."""

WARNING_PAUSE_S = 10.0
"""Least time between two warnings about refused connections: any program that reaches the port can cause them."""

_events = EventLog(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceStatistics:
    """Counts of a server since its creation; ``connections`` and ``inflight`` are current values."""

    connections: int
    """Open connections, authenticated or not yet."""
    refused_connections: int
    """Connections beyond the limit, too slow, or without the key of a job."""
    requests: int
    inflight: int
    """Unanswered requests over those connections."""
    names: int
    look_ups: int
    refusals: int
    """Requests answered with an error."""


class JobServer:
    """Serves tasks while ``run`` runs. A task can only name markers of the job whose key it has."""

    def __init__(
        self,
        secret: bytes,
        settings: ServiceSettings,
        handler: Handler,
        *,
        shutdown_error: Stopped | None = None,
        tls: ServerTls | None = None,
    ) -> None:
        """``secret``: at least 32 random bytes that stay in this process.

        ``shutdown_error`` is sent to every client when ``run`` ends, if the jobs end with it. Without it clients keep
        reconnecting, as after a restart, until their requests expire.

        Raises:
            InvalidRequest: the secret is too short, or the settings name no host that tasks could connect to.
        """
        job_key(secret, "")
        if settings.advertised_host is None and is_every_interface(settings.host):
            raise InvalidRequest(
                f"setting host={settings.host!r} listens on all interfaces and is not an address to connect to; "
                "set advertised_host to the address that tasks reach this machine by"
            )
        self._secret = secret
        self._settings = settings
        self._handler = handler
        self._shutdown_error = shutdown_error
        self._tls = tls
        self._counts = ServiceCounts()
        self._bound: tuple[str, int] | None = None
        self._connections: Connections[JobPeer] | None = None

    async def run(self, *, task_status: TaskStatus[tuple[str, int]] = anyio.TASK_STATUS_IGNORED) -> None:
        """Serve until cancelled; report the bound host and port as started. Then every connection is closed.

        Raises:
            InvalidRequest: the host or the port cannot be listened on.
        """
        async with closing(await self._listen()) as listeners:
            self._bound = bound_address(listeners[0])
            try:
                task_status.started(self._bound)
                self._connections = job_connections(
                    self._secret, self._settings, self._handler, self._counts, self._shutdown_error, self._tls
                )
                await self._connections.run([raw_socket(listener) for listener in listeners])
            finally:
                self._bound = self._connections = None

    def address(self, instant: str) -> ServiceAddress:
        """Return the address and key for tasks of this instant's job. Raises Closed unless ``run`` has started."""
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

    def connections(self) -> Counter[str]:
        """Return the number of connections by job, of those that have authenticated."""
        peers = () if self._connections is None else self._connections.peers
        return Counter(peer.job for peer in peers if peer.is_known)

    async def _listen(self) -> list[SocketListener]:
        return await listen(self._settings.host, self._settings.port, settings="ServiceSettings")


async def listen(host: str, port: int, *, settings: str) -> list[SocketListener]:
    """Return what listens there, on each address of the host. Raises InvalidRequest, naming the settings class."""
    try:
        listener = await anyio.create_tcp_listener(local_host=host, local_port=port)
    except OSError as error:
        raise InvalidRequest(
            f"cannot listen on {host}:{port}: {error}; set host and port of {settings} to an address of this machine "
            "and a free port (0 takes any)"
        ) from error
    return [each for each in listener.listeners if isinstance(each, SocketListener)]


@asynccontextmanager
async def closing(listeners: list[SocketListener]) -> AsyncIterator[list[SocketListener]]:
    """Yield the listeners, and close them when the block ends, in every case."""
    try:
        yield listeners
    finally:
        for listener in listeners:
            with anyio.CancelScope(shield=True):
                await listener.aclose()


class Poll:
    """Poll of sockets: which are ready to be read or written, or have ended."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def watch(self, raw: socket.socket, before: int, wanted: int, data: object) -> None:
        """Poll for these events of a socket in place of those before, or for none. Raises OSError."""
        if not before:
            self._selector.register(raw, wanted, data)
        elif wanted:
            self._selector.modify(raw, wanted, data)
        else:
            self._selector.unregister(raw)

    async def wait(self) -> None:
        """Return when something is ready, including sockets that are watched from now on."""
        await anyio.wait_readable(self._selector.fileno())

    def ready(self) -> list[tuple[Any, int]]:
        """Return the data of each socket that is ready, and its events."""
        return [(key.data, events) for key, events in self._selector.select(0)]

    def close(self) -> None:
        self._selector.close()


Start = Callable[[Sequence[tuple[P, Any]]], None]
"""start(asked) runs these requests. Each is answered once, unless its peer has disconnected."""


class ConnectionLimits(Protocol):
    """Limits of the connections of a service, as ``ServiceSettings`` describes them."""

    @property
    def connection_count(self) -> int: ...

    @property
    def handshake_count(self) -> int: ...

    @property
    def handshake_timeout_s(self) -> float: ...

    @property
    def send_timeout_s(self) -> float: ...


def job_connections(
    secret: bytes,
    settings: ServiceSettings,
    handler: Handler,
    counts: ServiceCounts,
    shutdown_error: Stopped | None,
    tls: ServerTls | None = None,
) -> "Connections[JobPeer]":
    """Return what serves the tasks of jobs."""

    def dispatch(tasks: TaskGroup, send: Send[JobPeer]) -> Start[JobPeer]:
        return Dispatcher(handler, settings.frame_bytes, counts, tasks, send).start

    def welcome(raw: socket.socket) -> JobPeer:
        return JobPeer(raw if tls is None else tls.wrap(raw), secret, settings)

    return Connections(settings, counts, welcome, dispatch, shutdown_error=shutdown_error)


class Connections(Generic[P]):
    """Serves peers while ``run`` runs."""

    def __init__(
        self,
        limits: ConnectionLimits,
        counts: ConnectionCounts,
        welcome: Callable[[socket.socket], P],
        dispatch: Callable[[TaskGroup, Send[P]], Start[P]],
        *,
        shutdown_error: Stopped | None = None,
    ) -> None:
        """``welcome`` makes a peer of a connection; ``dispatch`` returns what runs the requests of all of them.
        ``shutdown_error`` is sent to peers when ``run`` is cancelled.
        """
        self._settings = limits
        self._counts = counts
        self._welcome_peer = welcome
        self._dispatch = dispatch
        self._shutdown_error = shutdown_error
        self._poll = Poll()
        self._peers: dict[P, None] = {}  # as they came
        self._handshakes: dict[P, float] = {}
        """Deadline of each peer that owes something, the earliest first."""
        self._slow: dict[P, float] = {}
        """Deadline of each peer to take its responses, the earliest first."""
        self._waiting = anyio.CancelScope()
        self._responding: dict[P, None] = {}
        self._resumed: dict[P, None] = {}
        """Peers that have sent more requests than could be in flight, and may continue."""
        self._is_posting = False
        self._connections_max = connections_max(limits)
        self._warned_at = -math.inf
        self._unreported = 0
        """Refused connections since the last warning about one."""

    @property
    def peers(self) -> Collection[P]:
        """Those that are connected."""
        return self._peers.keys()

    async def run(self, listeners: Iterable[socket.socket]) -> None:
        """Serve clients of these sockets until cancelled; then close all connections. No peer can make it raise."""
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                self._start = self._dispatch(tasks, self._post)
                for listener in listeners:
                    listener.setblocking(False)
                    self._poll.watch(listener, 0, READ, listener)
                try:
                    await self._serve()
                finally:  # before the tasks have ended: some may run what cannot be cancelled
                    self._send_shutdown_error()
                    for peer in [*self._peers]:
                        self._end(peer)
        finally:
            self._poll.close()

    async def _serve(self) -> NoReturn:
        while True:
            await self._wait()
            await self._serve_ready()

    async def _wait(self) -> None:
        """Wait until a socket is ready, a peer can continue, or a deadline has passed."""
        if self._resumed:
            await anyio.lowlevel.checkpoint()
            return
        until = min(next(iter(self._handshakes.values()), math.inf), next(iter(self._slow.values()), math.inf))
        with anyio.CancelScope(deadline=until) as self._waiting:
            await self._poll.wait()

    async def _serve_ready(self) -> None:
        """Serve the peers that can continue, and every socket that is ready."""
        resumed, self._resumed = self._resumed, {}
        await self._continue([*resumed])
        ready = sorted(self._poll.ready(), key=lambda each: _is_listener(each[0]))  # new peers last
        for start in range(0, len(ready), _AT_ONCE):
            if start:
                await anyio.lowlevel.checkpoint()
            some = ready[start : start + _AT_ONCE]
            for each, events in some:
                if _is_listener(each):
                    self._accept(each)
                elif events & READ and each.is_open:
                    self._read(each)
            await self._continue([each for each, _ in some if not _is_listener(each)])
        self._send_away_the_late()

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(max(1, int(_ACCEPTED_PART * self._settings.handshake_count))):
            try:
                raw, _ = listener.accept()
            except BlockingIOError:
                return
            except OSError as error:  # reset while it waited, or no descriptor is left
                self._warn(error)
                self._poll.watch(listener, READ, 0, listener)
                self._tasks.start_soon(self._listen_again, listener)
                return
            is_full = self._counts.connections >= self._connections_max
            if is_full or len(self._handshakes) >= self._settings.handshake_count:
                self._disconnect_earliest_stranger()
            if self._counts.connections < self._connections_max:
                self._welcome(raw)
                continue
            self._counts.refused_connections += 1
            self._warn(f"limit of {self._connections_max} connections")
            raw.close()

    def _disconnect_earliest_stranger(self) -> None:
        """Make room for another peer, unless all are authenticated: a task that authenticates needs milliseconds.

        Those that have named a job go last.
        """
        strangers = (peer for peer in self._handshakes if not peer.job)
        earliest = next(strangers, None) or next(iter(self._handshakes), None)
        if earliest is not None:
            self._counts.refused_connections += 1
            self._warn(f"{len(self._handshakes)} peers that have not authenticated")
            self._end(earliest)

    def _warn(self, reason: object) -> None:
        """Log that a connection was refused, unless another was logged a moment ago."""
        now = anyio.current_time()
        if now - self._warned_at < WARNING_PAUSE_S:
            self._unreported += 1
            return
        _events.warning("connection.refused", reason=reason, more=self._unreported or None)
        self._warned_at, self._unreported = now, 0

    async def _listen_again(self, listener: socket.socket) -> None:
        while True:
            await anyio.sleep(_ACCEPT_PAUSE_S)
            try:
                self._poll.watch(listener, 0, READ, listener)
            except OSError as error:
                self._warn(error)
            else:
                return

    def _welcome(self, raw: socket.socket) -> None:
        try:
            peer = self._welcome_peer(raw)
        except OSError as error:  # it has disconnected
            self._warn(error)
            raw.close()
            return
        self._counts.connections += 1
        self._peers[peer] = None
        self._handshakes[peer] = anyio.current_time() + self._settings.handshake_timeout_s
        try:
            peer.raw.setblocking(False)
            tune(peer.raw)
            self._watch(peer)
        except OSError as error:
            self._lose(peer, error)

    def _read(self, peer: P) -> None:
        try:
            peer.read()
        except InvalidRequest as error:
            self._refuse(peer, error)
        except OSError as error:
            self._lose(peer, error)
        except Exception:
            self._fail(peer)
        if not peer.owes:
            self._handshakes.pop(peer, None)
        elif peer.is_open and not peer.is_leaving:
            self._handshakes.setdefault(peer, anyio.current_time() + self._settings.handshake_timeout_s)

    async def _continue(self, peers: Sequence[P]) -> None:
        """Start the requests of these peers, as far as they may be in flight, and send their responses."""
        while peers:
            count_max = max(_AT_ONCE // len(peers), 1)
            asked = [(peer, request) for peer in peers for request in self._requests_of(peer, count_max)]
            if asked:
                self._start(asked)
            for peer in peers:
                self._write(peer)
            peers = [peer for peer in peers if peer.can_continue]
            if peers:
                await anyio.lowlevel.checkpoint()

    def _requests_of(self, peer: P, count_max: int) -> Sequence[Any]:
        if not peer.can_continue:
            return ()
        try:
            requests = peer.take(count_max)
        except InvalidRequest as error:
            self._refuse(peer, error)
            return ()
        except Exception:
            self._fail(peer)
            return ()
        self._counts.requests += len(requests)
        self._counts.inflight += len(requests)
        return requests

    async def _post(self, peers: Collection[P]) -> None:
        """Send the responses of these peers, with others that are queued at the same moment: acks of one flush are
        found by several tasks, and each write costs both sides more than the bytes of many acks.
        """
        self._responding.update(dict.fromkeys(peers))
        if self._is_posting:
            return
        self._is_posting = True
        try:
            ending = sum([peer.ending for peer in self._responding])
            if self._counts.inflight > ending:  # otherwise no peer can get another response
                await anyio.lowlevel.checkpoint()
        finally:  # cancelled, too: others rely on it
            self._is_posting = False
            responding, self._responding = self._responding, {}
            for peer in responding:
                self._write(peer)
                if peer.can_continue:
                    self._resumed[peer] = None
                    self._waiting.cancel()

    def _write(self, peer: P) -> None:
        if not peer.is_open:
            return
        try:
            self._counts.inflight -= peer.write()
            self._watch(peer)
        except OSError as error:
            _events.info("connection.lost", instant=peer.job, reason=error)
            self._end(peer)
            return
        if not peer.unsent_bytes:
            self._slow.pop(peer, None)
            if peer.is_leaving:
                self._end(peer)
        elif peer not in self._slow:  # responses until then are bounded by its requests in flight
            self._slow[peer] = anyio.current_time() + self._settings.send_timeout_s
            self._waiting.deadline = min(self._waiting.deadline, self._slow[peer])

    def _watch(self, peer: P) -> None:
        """Poll a peer for reads only while more of its requests may be in flight: otherwise its sends stop. Raises
        OSError.
        """
        reads, writes = peer.free and not peer.is_leaving, peer.unsent_bytes
        wanted = (READ if reads else 0) | (WRITE if writes else 0)
        if wanted != peer.watched:
            self._poll.watch(peer.raw, peer.watched, wanted, peer)
            peer.watched = wanted

    def _send_away_the_late(self) -> None:
        if not self._handshakes and not self._slow:
            return
        now = anyio.current_time()
        for peer in _late(self._handshakes, now):
            self._counts.refused_connections += 1
            self._end(peer)
        for peer in _late(self._slow, now):
            reason = f"it did not read what it was sent within {self._settings.send_timeout_s:g} s"
            _events.info("connection.lost", instant=peer.job, reason=reason)
            self._end(peer)

    def _refuse(self, peer: P, error: InvalidRequest) -> None:
        if peer.is_known:
            _events.warning("connection.closed", instant=peer.job, reason=error)
        else:
            self._warn(error)
            self._counts.refused_connections += 1
            self._handshakes.pop(peer, None)
        peer.refuse(error)
        self._write(peer)

    def _lose(self, peer: P, error: OSError) -> None:
        _events.debug("connection.lost", instant=peer.job or None, reason=error)
        self._counts.refused_connections += not peer.is_known and not peer.is_leaving
        self._end(peer)

    def _fail(self, peer: P) -> None:
        """End one connection after a fault in it, and leave the others."""
        _events.fault("connection.failed")
        self._end(peer)

    def _send_shutdown_error(self) -> None:
        """Send the shutdown error, without which a task would treat the end of its job as a lost connection and retry.

        It fits any socket's buffer, unless that peer has not read for long.
        """
        if self._shutdown_error is None:
            return
        for peer in [*self._peers]:
            peer.say_end(self._shutdown_error)
            self._write(peer)

    def _end(self, peer: P) -> None:
        if not peer.is_open:
            return
        if peer.watched:
            self._poll.watch(peer.raw, peer.watched, 0, peer)
        peer.close()
        self._peers.pop(peer, None)
        self._handshakes.pop(peer, None)
        self._slow.pop(peer, None)
        self._counts.connections -= 1
        self._counts.inflight -= peer.inflight


def connections_max(settings: ConnectionLimits) -> int:
    """Return how many connections may be open, by the settings and by the descriptors of this process."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        return settings.connection_count
    return min(settings.connection_count, max(1, int(DESCRIPTOR_SHARE * descriptors)))


def _is_listener(polled: object) -> bool:
    return not isinstance(polled, Peer)


def _late(until: Mapping[P, float], now: float) -> list[P]:
    """Return the peers whose deadline has passed; the earliest are first."""
    return [peer for peer, _ in takewhile(lambda entry: entry[1] <= now, until.items())]


def is_every_interface(host: str) -> bool:
    """Return whether the address is for listening on all interfaces: no client can connect to it."""
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return False


def bound_address(listener: SocketListener) -> tuple[str, int]:
    host, port, *_ = raw_socket(listener).getsockname()
    return host, port


def raw_socket(listener: SocketListener) -> socket.socket:
    raw = listener.extra(SocketAttribute.raw_socket)  # noqa: S610  # no Django here
    assert isinstance(raw, socket.socket)
    return raw
