"""The blocking client with which tasks ask the driver's service, from any thread of any process: for markers, and for
what partitions hold.
"""

import os
import secrets
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Self

from tallymark.engine.errors import InvalidRequest, ServiceUnavailable
from tallymark.engine.markers.direct_flag import DirectFlag
from tallymark.engine.rpc.address import ServiceAddress
from tallymark.engine.rpc.ask import AnyAsk, Ask, LookUpAsk
from tallymark.engine.rpc.circuit_breaker import Outage
from tallymark.engine.rpc.line import DIAL_TIMEOUT_S, Line

_CLOSED_CLIENTS_MAX = 64
_GRACE_S = 2 * DIAL_TIMEOUT_S


def client_for(address: ServiceAddress, instant: str, wait_s: float) -> "JobClient":
    """This process's client of one job; the same for every task of the job that runs here.

    With the first task of a new job the clients of other jobs give up their connections unless somebody waits for an
    answer there. In a forked child everything begins anew.
    """
    return _clients.get(address, instant, wait_s)


class JobClient:
    """Asks the service of one job over one connection, made with the first ask and again whenever it is lost."""

    def __init__(self, address: ServiceAddress, instant: str, *, wait_s: float) -> None:
        """``wait_s`` bounds the wait for each ack, in seconds, all attempts together."""
        self._address = address
        self._instant = instant
        self._wait_s = wait_s
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._line: Line | None = None
        self.outage = Outage()
        self.flag = DirectFlag()
        """Both for those who can do without the service while it is out of reach."""

    def ask(self, paths: Sequence[str], io: str = "CREATE") -> Future[None]:
        """Ask for a marker of each data file; returns at once, from any thread.

        The future settles within ``wait_s``. It has a result when all markers survive a crash; otherwise none of the
        files may be written, and its error is one of

            ServiceUnavailable   no answer in time: the message names the address and what to check
            ServiceOverloaded    the service was there, and had no room for them in all that time
            InvalidRequest       a path is refused
            NotAuthenticated     the key, or the release, is not the driver's
            FlushFailed          storage did not take the markers; ask again
            Sealed, RolledBack, Closed   the job is over

        It cannot be cancelled. Asking again for the same markers is safe. What is called back when it is done runs in
        whichever thread heard the answer, which may be any that asks: it must not wait for this client.
        """
        return self._ask(paths, io)

    def _ask(self, paths: Sequence[str], io: str, *, is_awaited: bool = False) -> Future[None]:
        ask = Ask(tuple(paths), io, time.monotonic() + self._wait_s, wait_s=self._wait_s)
        if problem := _broken_rule(paths, io):
            ask.future.set_exception(InvalidRequest(problem))
        elif not ask.paths:
            ask.future.set_result(None)
        else:
            self._put(ask, is_awaited)
        return ask.future

    def create(self, paths: Sequence[str], io: str = "CREATE") -> None:
        """When this returns, the markers of all paths survive a crash. Raises what the future of ``ask`` would.

        Takes less than to wait for that future: see ``is_awaited`` of ``look_up``.
        """
        future = self._ask(paths, io, is_awaited=True)
        try:
            future.result(self._wait_s + _GRACE_S)
        except TimeoutError as error:
            raise ServiceUnavailable(
                f"no answer within {self._wait_s + _GRACE_S:g} s, not even about {self._address.host}: "
                "check that this machine can resolve that name"
            ) from error

    def look_up(
        self, position: int, log_hash: str, partitions: Sequence[str], *, wait_s: float, is_awaited: bool = False
    ) -> Future[dict[str, bytes]]:
        """Ask what these partitions hold as of a position of the log with that hash; returns at once, from any thread.

        ``is_awaited``: the caller would wait for the future next. Then this need not return at once: while nobody else
        does, the caller's own thread talks to the service, and no other has to be woken.

        The future settles within ``wait_s``. It has the block of each partition (``views.block``), as the driver's view
        has it, or one of these errors:

            ServiceUnavailable   no answer in time, or the service answers no look-ups
            InvalidRequest       the service does not answer for that position, or it is one of another log
            NotAuthenticated     the key, or the release, is not the driver's
            Sealed, RolledBack, Closed   the job is over
        """
        wanted = tuple(dict.fromkeys(partitions)) if not isinstance(partitions, str) else ()
        ask = LookUpAsk(position, log_hash, wanted, time.monotonic() + wait_s, wait_s=wait_s)
        if problem := _broken_rule(partitions, log_hash):
            ask.future.set_exception(InvalidRequest(problem))
        elif not wanted:
            ask.future.set_result({})
        else:
            self._put(ask, is_awaited)
        return ask.future

    def close(self) -> None:
        """Give up the connection; who still waits for an answer gets Closed. A later ask opens another."""
        with self._lock:
            line, self._line = self._line, None
        if line is not None:
            line.hang_up()

    def close_if_idle(self) -> bool:
        """Give up the connection and return True, or return False: somebody waits for an answer."""
        with self._lock:
            if self._line is not None and not self._line.hang_up_if_idle():
                return False
            self._line = None
            return True

    def drop_after_fork(self) -> None:
        """In a forked child, which has no use for its parent's clients: close the copies of their descriptors."""
        if self._line is not None:
            self._line.drop_after_fork()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _put(self, ask: AnyAsk, is_awaited: bool) -> None:
        if os.getpid() != self._process:
            raise InvalidRequest(
                f"a marker client of process {self._process} is used in {os.getpid()}; take one with client_for() there"
            )
        while not self._standing_line().put(ask, is_awaited=is_awaited):
            pass  # it has just ended

    def _standing_line(self) -> Line:
        with self._lock:
            if self._line is None or self._line.has_ended:
                line = Line(self._address, self._instant, jitter=secrets.SystemRandom().random)
                line.start()  # first: nobody is to ask a line that an interrupt has kept from running
                self._line = line
            return self._line


class _Clients:
    """The clients of this process. The one piece of state that outlives a task: a connection is dear, a task short."""

    def __init__(self) -> None:
        self._start_over()

    def get(self, address: ServiceAddress, instant: str, wait_s: float) -> JobClient:
        key = (os.getpid(), address, instant, wait_s)
        with self._lock:
            if key not in self._clients:
                self._close_others()
                self._clients[key] = JobClient(address, instant, wait_s=wait_s)
            return self._clients[key]

    def forget_parent(self) -> None:
        """In a forked child: another thread of the parent may have held any lock, and the sockets are the parent's."""
        inherited = list(self._clients.values())
        self._start_over()
        for client in inherited:
            client.drop_after_fork()

    def _start_over(self) -> None:
        self._lock = threading.Lock()
        self._clients: dict[tuple[int, ServiceAddress, str, float], JobClient] = {}

    def _close_others(self) -> None:
        """A closed client is small, and a task that still holds it may open it again: forget only the oldest."""
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
            return f"path {text!r} is no text; give paths relative to the table, such as 'a/b.parquet'"
    return None
