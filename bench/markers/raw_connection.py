"""An authenticated connection to the service that its caller drives, for load generators."""

import contextlib
import secrets
import socket

from tallymark.engine.rpc.connection import ClientSession
from tallymark.engine.rpc.handshake import NONCE_BYTES, ServiceAddress
from tallymark.engine.rpc.messages import Answer, Request
from tallymark.engine.rpc.tcp import tune

_READ_BYTES = 65536


class RawConnection:
    """Requests are sent as they are, each in one message. Blocks only while it connects."""

    def __init__(self, address: ServiceAddress, instant: str, *, timeout_s: float) -> None:
        """Raise OSError or NotAuthenticated."""
        self._raw = socket.create_connection((address.host, address.port), timeout=timeout_s)
        tune(self._raw)
        self._session = ClientSession(address, instant, nonce=secrets.token_bytes(NONCE_BYTES))
        while not self._session.is_authenticated:
            self._send()
            self._session.receive(self._raw.recv(_READ_BYTES))
        self._raw.setblocking(False)

    def fileno(self) -> int:
        return self._raw.fileno()

    def send(self, request: Request) -> None:
        """Queue the request for the next ``exchange``."""
        self._session.send(request)

    def exchange(self) -> list[Answer]:
        """Send and receive what is possible without waiting."""
        with contextlib.suppress(BlockingIOError):
            self._send()
        with contextlib.suppress(BlockingIOError):
            return self._session.receive(self._raw.recv(_READ_BYTES))
        return []

    def close(self) -> None:
        self._raw.close()

    def _send(self) -> None:
        if self._session.outgoing:
            del self._session.outgoing[: self._raw.send(self._session.outgoing)]
