"""All connections of the service, in one task: it waits for all sockets at once, and reads and writes them itself."""

import math
import selectors
import socket
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final, NoReturn

import anyio
import anyio.lowlevel

from tallymark.backends.events import EventLog
from tallymark.engine.errors import InvalidRequest, Stopped
from tallymark.engine.rpc.dispatcher import Answering, ServiceCounts
from tallymark.engine.rpc.handler import Work
from tallymark.engine.rpc.messages import WHOLE_CONNECTION, Refusal, Request
from tallymark.engine.rpc.peer import Peer
from tallymark.engine.rpc.tcp import tune
from tallymark.engine.settings import ServiceSettings

READ: Final = selectors.EVENT_READ
WRITE: Final = selectors.EVENT_WRITE


class Poll:
    """What it watches is ready to be read, or written, or has ended."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def watch(self, raw: socket.socket, before: int, wanted: int, data: object) -> None:
        """Wait for these events of a socket in place of those before, or for none. Raises OSError."""
        if not before:
            self._selector.register(raw, wanted, data)
        elif wanted:
            self._selector.modify(raw, wanted, data)
        else:
            self._selector.unregister(raw)

    async def wait(self) -> None:
        """Until something is ready, also what is watched from now on."""
        await anyio.wait_readable(self._selector.fileno())

    def ready(self) -> list[tuple[Any, int]]:
        """Return the data of each socket that is ready, and its events."""
        return [(key.data, events) for key, events in self._selector.select(0)]

    def close(self) -> None:
        self._selector.close()


_ACCEPT_PAUSE_S = 0.1

_AT_ONCE = 256
"""Sockets that are read, or requests that are begun, between two passes of the loop; each takes some 20 to 100 us."""

_events = EventLog(__name__)


class Connections:
    """Serves peers while ``run`` runs."""

    def __init__(
        self, secret: bytes, settings: ServiceSettings, work: Work, counts: ServiceCounts, farewell: Stopped | None
    ) -> None:
        """``farewell`` is what peers are told when ``run`` is cancelled."""
        self._secret = secret
        self._settings = settings
        self._work = work
        self._counts = counts
        self._farewell = farewell
        self._poll = Poll()
        self._peers: dict[Peer, None] = {}  # as they came
        self._handshakes: dict[Peer, float] = {}
        """Until when each has to be known, the earliest first."""
        self._slow: dict[Peer, float] = {}
        """Until when each has to have taken what it was told, the earliest first."""
        self._waiting = anyio.CancelScope()
        self._told: dict[Peer, None] = {}
        self._resumed: dict[Peer, None] = {}
        """Who has asked for more than could be in flight, and may go on."""
        self._is_posting = False

    async def run(self, listeners: Iterable[socket.socket]) -> None:
        """Serve who connects to these until cancelled; all connections are closed then. Does not raise for any peer."""
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks
                self._answering = Answering(self._work, self._settings.frame_bytes, self._counts, tasks, self._post)
                for listener in listeners:
                    listener.setblocking(False)
                    self._poll.watch(listener, 0, READ, listener)
                try:
                    await self._serve()
                finally:  # before the tasks have ended: some may be amid what cannot be cancelled
                    self._say_farewell()
                    for peer in [*self._peers]:
                        self._end(peer)
        finally:
            self._poll.close()

    async def _serve(self) -> NoReturn:
        while True:
            await self._wait()
            await self._turn()

    async def _wait(self) -> None:
        """Until a socket is ready, somebody may go on, or the time of somebody is over."""
        if self._resumed:
            await anyio.lowlevel.checkpoint()
            return
        until = min(next(iter(self._handshakes.values()), math.inf), next(iter(self._slow.values()), math.inf))
        with anyio.CancelScope(deadline=until) as self._waiting:
            await self._poll.wait()

    async def _turn(self) -> None:
        """Look after whoever may go on, and every socket that is ready."""
        resumed, self._resumed = self._resumed, {}
        await self._go_on([*resumed])
        ready = self._poll.ready()
        for start in range(0, len(ready), _AT_ONCE):
            if start:
                await anyio.lowlevel.checkpoint()
            some = ready[start : start + _AT_ONCE]
            for each, events in some:
                if not isinstance(each, Peer):
                    self._accept(each)
                elif events & READ and each.is_open:
                    self._read(each)
            await self._go_on([each for each, _ in some if isinstance(each, Peer)])
        self._send_away_the_late()

    def _accept(self, listener: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                raw, _ = listener.accept()
            except BlockingIOError:
                return
            except OSError as error:  # reset while it waited, or no descriptor is left
                _events.warning("connection.refused", reason=error)
                self._poll.watch(listener, READ, 0, listener)
                self._tasks.start_soon(self._listen_again, listener)
                return
            if self._counts.connections < self._settings.connection_count:
                self._welcome(raw)
                continue
            self._counts.refused_connections += 1
            _events.warning("connection.refused", reason=f"limit of {self._settings.connection_count} connections")
            raw.close()

    async def _listen_again(self, listener: socket.socket) -> None:
        while True:
            await anyio.sleep(_ACCEPT_PAUSE_S)
            try:
                self._poll.watch(listener, 0, READ, listener)
            except OSError as error:
                _events.warning("connection.refused", reason=error)
            else:
                return

    def _welcome(self, raw: socket.socket) -> None:
        peer = Peer(raw, self._secret, self._settings)
        self._counts.connections += 1
        self._peers[peer] = None
        self._handshakes[peer] = anyio.current_time() + self._settings.handshake_timeout_s
        try:
            raw.setblocking(False)
            tune(raw)
            self._watch(peer)
        except OSError as error:
            self._lose(peer, error)

    def _read(self, peer: Peer) -> None:
        try:
            peer.read()
        except InvalidRequest as error:
            self._refuse(peer, error)
        except OSError as error:
            self._lose(peer, error)
        except Exception:
            self._fail(peer)
        if peer.is_known:
            self._handshakes.pop(peer, None)

    async def _go_on(self, peers: Sequence[Peer]) -> None:
        """Begin what these have asked, as far as that may be in flight, and send what they were told."""
        while peers:
            count_max = max(_AT_ONCE // len(peers), 1)
            asked = [(peer, request) for peer in peers for request in self._requests_of(peer, count_max)]
            if asked:
                self._answering.begin(asked)
            for peer in peers:
                self._write(peer)
            peers = [peer for peer in peers if peer.may_go_on]
            if peers:
                await anyio.lowlevel.checkpoint()

    def _requests_of(self, peer: Peer, count_max: int) -> Sequence[Request]:
        if not peer.may_go_on:
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

    async def _post(self, peers: Collection[Peer]) -> None:
        """Send what these were told, with what others of this moment are about to be told: acks of one flush are found
        by several tasks, and each write costs both sides more than the bytes of many acks.
        """
        self._told.update(dict.fromkeys(peers))
        if self._is_posting:
            return
        self._is_posting = True
        try:
            ending = sum([peer.ending for peer in self._told])
            if self._counts.inflight > ending:  # else there is nobody who could have another answer
                await anyio.lowlevel.checkpoint()
        finally:  # cancelled, too: others rely on it
            self._is_posting = False
            told, self._told = self._told, {}
            for peer in told:
                self._write(peer)
                if peer.may_go_on:
                    self._resumed[peer] = None
                    self._waiting.cancel()

    def _write(self, peer: Peer) -> None:
        if not peer.is_open:
            return
        try:
            self._counts.inflight -= peer.write()
            self._watch(peer)
        except OSError as error:
            _events.info("connection.lost", instant=peer.instant, reason=error)
            self._end(peer)
            return
        if not peer.unsent_bytes:
            self._slow.pop(peer, None)
            if peer.is_leaving:
                self._end(peer)
        elif peer not in self._slow:  # what it is told meanwhile is bounded by what it may have in flight
            self._slow[peer] = anyio.current_time() + self._settings.send_timeout_s
            self._waiting.deadline = min(self._waiting.deadline, self._slow[peer])

    def _watch(self, peer: Peer) -> None:
        """For what it says only while more may be in flight: else its sends come to a halt. Raises OSError."""
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
            _events.info("connection.lost", instant=peer.instant, reason=reason)
            self._end(peer)

    def _refuse(self, peer: Peer, error: InvalidRequest) -> None:
        if peer.is_known:
            _events.warning("connection.closed", instant=peer.instant, reason=error)
        else:
            _events.warning("connection.refused", reason=error)
            self._counts.refused_connections += 1
            self._handshakes.pop(peer, None)
        peer.refuse(error)
        self._write(peer)

    def _lose(self, peer: Peer, error: OSError) -> None:
        _events.debug("connection.lost", instant=peer.instant or None, reason=error)
        self._counts.refused_connections += not peer.is_known and not peer.is_leaving
        self._end(peer)

    def _fail(self, peer: Peer) -> None:
        """A fault of ours in one connection is not to end the others."""
        _events.fault("connection.failed")
        self._end(peer)

    def _say_farewell(self) -> None:
        """Without it a task would take the end of its job for a lost connection, and go on asking.

        It fits any socket's buffer, unless that peer has not read for long.
        """
        if self._farewell is None:
            return
        for peer in [peer for peer in self._peers if peer.is_known and not peer.is_leaving]:
            peer.tell([Refusal(WHOLE_CONNECTION, self._farewell)])
            self._write(peer)

    def _end(self, peer: Peer) -> None:
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


def _late(until: Mapping[Peer, float], now: float) -> list[Peer]:
    """Return the first ones, which are the earliest."""
    return [peer for peer, _ in takewhile(lambda entry: entry[1] <= now, until.items())]
