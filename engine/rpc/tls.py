"""TLS of a service outside of the driver, over sockets that do not block.

Within it tasks authenticate by the key of their job as they do without it (``handshake``): TLS shows a task that it has
reached the service, and hides what passes.
"""

import socket
import ssl
from collections.abc import Sequence
from pathlib import Path

from tallymark.backends.events import EventLog
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.rpc.reread import Reread

WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
"""Raised by a socket that does not block, encrypted or not, where it would wait."""

_events = EventLog(__name__)


class ServerTls:
    """Certificate and key of a service. Files that have changed are read again for the next connection."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """``certificate`` is a PEM file with the chain. Raises InvalidRequest for files that cannot be used."""
        self._certificate, self._key = certificate, key
        try:
            self._context = Reread([certificate, key], lambda: _server_context(certificate, key))
        except (OSError, ValueError) as error:
            raise InvalidRequest(f"the certificate {certificate} with the key {key} cannot be used: {error}") from error

    def wrap(self, raw: socket.socket) -> ssl.SSLSocket:
        """Return the socket of a connection, encrypted. The handshake is part of its first reads. Raises OSError."""
        self._refresh()
        return self._context.value.wrap_socket(raw, server_side=True, do_handshake_on_connect=False)

    def context(self, *, protocols: Sequence[str]) -> ssl.SSLContext:
        """Return a context for servers that wrap sockets themselves and speak these protocols (ALPN). Each handshake
        uses the files as they are then.
        """

        def follow(connection: ssl.SSLSocket | ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> None:
            self._refresh()
            self._context.value.set_alpn_protocols(protocols)
            connection.context = self._context.value

        context = _server_context(self._certificate, self._key)
        context.set_alpn_protocols(protocols)
        context.sni_callback = follow  # called for each handshake, with or without a name
        return context

    def _refresh(self) -> None:
        try:
            if self._context.refresh():
                _events.info("certificate.read", path=self._certificate)
        except (OSError, ValueError) as error:  # being replaced: what was read before is used
            _events.warning("certificate.unreadable", path=self._certificate, reason=error)


def _server_context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(certificate, key)
    return context


def client_context(certificates: str) -> ssl.SSLContext:
    """Return what a client checks a service with: these certificates in PEM, or if empty the system's.

    Raises InvalidRequest for a text that has none.
    """
    try:
        return ssl.create_default_context(cadata=certificates or None)
    except (ssl.SSLError, ValueError) as error:
        raise InvalidRequest(f"the certificates to trust are not in PEM: {error}") from error


def receive(raw: socket.socket, count: int) -> bytes:
    """Return what has arrived, about ``count`` bytes at most. Raises what ``recv`` does."""
    data = raw.recv(count)
    if isinstance(raw, ssl.SSLSocket):
        while left := raw.pending():  # decrypted already: no poll reports it
            data += raw.recv(left)
    return data
