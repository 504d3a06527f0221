"""Blocking client of the driver's service, for any thread of a task's process: markers, and lookups of partitions."""

import os
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from random import SystemRandom
from types import TracebackType
from typing import Self

from tallymark.engine.errors import InvalidRequest, ServiceUnavailable
from tallymark.engine.markers.direct_flag import DirectFlag
from tallymark.engine.rpc.circuit_breaker import Outage
from tallymark.engine.rpc.connection import CONNECT_TIMEOUT_S, ClientConnection, ThreadIo, run_blocking
from tallymark.engine.rpc.handshake import ServiceAddress
from tallymark.engine.rpc.messages import Commit
from tallymark.engine.rpc.pending_requests import AnyPending, PendingCommit, PendingLookUp, PendingMarkers
from tallymark.engine.rpc.tls import client_context

_CLOSED_CLIENTS_MAX = 64
_GRACE_S = 2 * CONNECT_TIMEOUT_S


def client_for(address: ServiceAddress, instant: str, wait_s: float) -> "JobClient":
    """Return this process's client of one job; every task of the job in this process gets the same one.

    With the first task of a new job the idle clients of other jobs close their connections. A forked child starts
    without clients.
    """
    return _clients.get(address, instant, wait_s)


class JobClient:
    """Requests of one job over one connection, which is opened with the first request and again whenever it is lost."""

    def __init__(self, address: ServiceAddress, instant: str, *, wait_s: float) -> None:
        """Bound by ``wait_s`` the wait for each ack, in seconds, all attempts together."""
        self._address = address
        self._instant = instant
        self._wait_s = wait_s
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._running: _Running | None = None
        self.outage = Outage()
        """For callers with a fallback: whether the service is unreachable."""
        self.flag = DirectFlag()
        """For callers that put direct markers while the service is unreachable."""

    def request(self, paths: Sequence[str], io: str = "CREATE") -> Future[None]:
        """Request a marker for each data file. Returns at once; callable from any thread.

        The future settles within ``wait_s``. It has a result when all markers survive a crash; otherwise none of the
        files may be written, and its error is one of

            ServiceUnavailable   no response in time: the message names the address and what to check
            ServiceOverloaded    the service was there, and had no room for them in all that time
            InvalidRequest       a path is refused
            NotAuthenticated     the key, or the release, is not the driver's
            FlushFailed          storage did not take the markers; request them again
            Sealed, RolledBack, Closed   the job is over

        It cannot be cancelled. Requesting the same markers again is safe. Callbacks of the future run in the client's
        thread: they must not wait for this client.
        """
        request = PendingMarkers(tuple(paths), time.monotonic() + self._wait_s, self._wait_s, io)
        if problem := _broken_rule(paths, io):
            request.future.set_exception(InvalidRequest(problem))
        elif not request.names:
            request.future.set_result(None)
        else:
            self._submit(request)
        return request.future

    def create(self, paths: Sequence[str], io: str = "CREATE") -> None:
        """Return when the markers of all paths survive a crash. Raises what the future of ``request`` would."""
        future = self.request(paths, io)
        try:
            future.result(self._wait_s + _GRACE_S)
        except TimeoutError as error:
            raise ServiceUnavailable(
                f"no answer within {self._wait_s + _GRACE_S:g} s, not even about {self._address.host}: "
                "check that this machine can resolve that name"
            ) from error

    def look_up(
        self, position: int, log_hash: str, partitions: Sequence[str], *, wait_s: float
    ) -> Future[dict[str, bytes]]:
        """Request the blocks of these partitions as of a position of the log with that hash. Returns at once.

        Callable from any thread. The future settles within ``wait_s``. It has the block of each partition
        (``views.block``), from the driver's view, or one of these errors:

            ServiceUnavailable   no response in time, or the service answers no lookups
            InvalidRequest       the service has no view of that position, or the position is of another log
            NotAuthenticated     the key, or the release, is not the driver's
            Sealed, RolledBack, Closed   the job is over
        """
        names = tuple(dict.fromkeys(partitions)) if not isinstance(partitions, str) else ()
        request = PendingLookUp(names, time.monotonic() + wait_s, wait_s, position, log_hash)
        if problem := _broken_rule(partitions, log_hash):
            request.future.set_exception(InvalidRequest(problem))
        elif not names:
            request.future.set_result({})
        else:
            self._submit(request)
        return request.future

    def commit(self, commit: Commit) -> Future[int]:
        """Request a commit, and return at once; callable from any thread. The id of the message is set here.

        The future settles within the time limit of the client. It has the position at which the commit is in the log.
        Any error leaves it open whether it is, or will be: its writer reads the log.
        """
        request = PendingCommit((), time.monotonic() + self._wait_s, self._wait_s, commit=commit)
        self._submit(request)
        return request.future

    def close(self) -> None:
        """Close the connection; pending requests fail as Closed. A later request opens another connection."""
        with self._lock:
            running, self._running = self._running, None
        if running is not None:
            running.connection.stop()
            running.join()

    def close_if_idle(self) -> bool:
        """Close the connection and return True, or return False: a request waits for its response."""
        with self._lock:
            running = self._running
            if running is not None and not running.connection.stop_if_idle():
                return False
            self._running = None
        if running is not None:
            running.join()
        return True

    def drop_after_fork(self) -> None:
        """In a forked child, which does not use its parent's clients: close the copies of their descriptors."""
        if self._running is not None:
            self._running.io.drop_after_fork()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _submit(self, request: AnyPending) -> None:
        if os.getpid() != self._process:
            raise InvalidRequest(
                f"a service client of process {self._process} is used in process {os.getpid()}; "
                "get one with client_for() there"
            )
        while not self._connection().submit(request):
            pass  # it has just ended

    def _connection(self) -> ClientConnection:
        with self._lock:
            if self._running is None or self._running.connection.has_ended:
                running = _Running(self._address, self._instant)
                running.thread.start()  # first: an interrupt here leaves no connection without its thread
                self._running = running
            return self._running.connection


class _Running:
    """A connection and the daemon thread that runs it."""

    def __init__(self, address: ServiceAddress, instant: str) -> None:
        self.io = ThreadIo(None if address.certificates is None else client_context(address.certificates))
        self.connection = ClientConnection(address, instant, self.io, SystemRandom())
        self.thread = threading.Thread(
            target=lambda: run_blocking(self.connection.run()), name=f"tallymark markers {instant}", daemon=True
        )

    def join(self) -> None:
        """Wait for the end of the thread, unless a callback in that thread calls this, or name resolution blocks it."""
        if self.thread is not threading.current_thread():
            self.thread.join(CONNECT_TIMEOUT_S + 1)


class _Clients:
    """The clients of this process. The only state that outlives a task: connecting takes long, a task is short."""

    def __init__(self) -> None:
        self._reset()

    def get(self, address: ServiceAddress, instant: str, wait_s: float) -> JobClient:
        key = (os.getpid(), address, instant, wait_s)
        with self._lock:
            if key not in self._clients:
                self._close_idle()
                self._clients[key] = JobClient(address, instant, wait_s=wait_s)
            return self._clients[key]

    def forget_parent(self) -> None:
        """Reset in a forked child: a parent's thread may have held any lock, and the sockets are the parent's."""
        inherited = list(self._clients.values())
        self._reset()
        for client in inherited:
            client.drop_after_fork()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._clients: dict[tuple[int, ServiceAddress, str, float], JobClient] = {}

    def _close_idle(self) -> None:
        """Keep closed clients, since a running task may use its client again; drop only the oldest."""
        closed = [key for key, client in self._clients.items() if client.close_if_idle()]
        for key in closed[:-_CLOSED_CLIENTS_MAX]:
            del self._clients[key]


_clients = _Clients()
os.register_at_fork(after_in_child=_clients.forget_parent)


def _broken_rule(paths: Sequence[str], io: str) -> str | None:
    if isinstance(paths, str):
        return f"paths {paths!r}: give a list of paths, not one text"
    for text in (io, *paths):
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            return f"path {text!r} is not valid Unicode; rename it"
        except AttributeError:
            return f"path {text!r} is not a text; give paths relative to the table, such as 'a/b.parquet'"
    return None
