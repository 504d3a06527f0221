"""One peer of a service: its requests that have not run yet, and the responses that it has not taken yet.

Owns: the bound of its requests in flight, and what waits to be sent. Does not own: when its socket is read or written
(``server``), what its bytes mean (``job_peer`` and others), nor what its requests mean. Never blocks, and has no task.
"""

import socket
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from typing import Any, TypeVar

import anyio

from tallymark.engine.errors import InvalidRequest, Stopped
from tallymark.engine.rpc.tls import WOULD_BLOCK, receive

READ_BYTES = 65536
"""Bytes read at once from a peer that is known."""


class Peer(ABC):
    """A connection of one client. Its socket does not block."""

    def __init__(self, raw: socket.socket, *, inflight_count: int) -> None:
        self.raw = raw
        self.watched = 0
        """Events that the server polls its socket for."""
        self._inflight_count = inflight_count
        self.free = inflight_count
        """Number of further requests that may be in flight."""
        self.is_open = True
        self.is_leaving = False
        """Whether it was refused: nothing more is read from it, and the connection ends when it has taken its
        responses.
        """
        self.on_end: set[Callable[[], None]] = set()
        """Called when the connection has ended."""
        self.sending = anyio.Lock()
        """Senders that wait for ``room``, in their order."""
        self._read_bytes = READ_BYTES
        self._unsent = bytearray()
        self.ending = 0
        """Requests that end with the responses that it has not taken yet."""
        self._emptied: anyio.Event | None = None

    @property
    def job(self) -> str:
        """The job that it has named, if it is of one."""
        return ""

    @property
    @abstractmethod
    def is_known(self) -> bool:
        """Whether it has shown that it is a client."""

    @property
    @abstractmethod
    def owes(self) -> bool:
        """Whether it has to send something within a time limit: what shows that it is a client, or the rest of a
        request.
        """

    @property
    @abstractmethod
    def has_requests(self) -> bool:
        """Whether it has sent a request that has not run yet."""

    @abstractmethod
    def feed(self, data: bytes) -> None:
        """Take what it has sent. Raises InvalidRequest: it is not a client, or the bytes cannot be a message."""

    @abstractmethod
    def take(self, count_max: int) -> list[Any]:
        """Return its requests, as far as they may be in flight, and at most this many.

        Raises:
            InvalidRequest: nothing that it has sent since is valid.
        """

    @abstractmethod
    def refuse(self, error: InvalidRequest) -> None:
        """Send it the reason why the connection ends, and drop its requests that have not started."""

    @abstractmethod
    def say_end(self, error: Stopped) -> None:
        """Send it why the service ends, if it waits for that."""

    @abstractmethod
    def drop_requests(self) -> None:
        """Drop its requests that have not started."""

    @property
    def inflight(self) -> int:
        """Requests that were accepted and whose answers were not sent completely."""
        return self._inflight_count - self.free

    @property
    def can_continue(self) -> bool:
        """Whether it has sent a request that may be in flight now."""
        return bool(self.has_requests and self.free and self.is_open)

    @property
    def unsent_bytes(self) -> int:
        return len(self._unsent)

    def read(self) -> None:
        """Read its socket once.

        Raises:
            OSError: it has disconnected, or is lost.
            InvalidRequest: as ``feed``.
        """
        try:
            data = receive(self.raw, self._read_bytes)
        except WOULD_BLOCK:
            return
        if not data:
            raise ConnectionResetError("it has closed the connection")
        self.feed(data)

    def write(self) -> int:
        """Send what the socket accepts. Return how many requests have ended with that. Raises OSError."""
        if self._unsent:
            try:
                sent = self.raw.send(self._unsent)
            except WOULD_BLOCK:
                return 0
            del self._unsent[:sent]
            if self._unsent:
                return 0
        if self._emptied is not None:
            self._emptied.set()
        ended, self.ending = self.ending, 0
        self.free += ended
        return ended

    async def room(self) -> None:
        """Return when nothing waits to be sent, or the connection has ended."""
        while self._unsent and self.is_open:
            if self._emptied is None or self._emptied.is_set():
                self._emptied = anyio.Event()
            await self._emptied.wait()

    def close(self) -> None:
        """End the connection, whatever it has not taken yet.

        Unread bytes would turn the close into a reset, which discards the last responses at the peer: some are read and
        dropped first.
        """
        self.is_open = False
        self.drop_requests()
        self._unsent.clear()
        if self._emptied is not None:
            self._emptied.set()
        with suppress(OSError):
            self.raw.recv(READ_BYTES)
        with suppress(OSError):  # a forked child may hold a copy of the descriptor
            self.raw.shutdown(socket.SHUT_RDWR)
        self.raw.close()
        for call in [*self.on_end]:
            call()


P = TypeVar("P", bound=Peer)

Send = Callable[[Collection[P]], Awaitable[None]]
"""send(peers) sends the queued responses of these peers."""
