"""TCP options of both sides: small messages are sent at once, and a vanished peer is noticed."""

import socket
from typing import Protocol

_DEAD_AFTER_MS = 30_000
_OPTIONS = (
    ("TCP_NODELAY", 1),
    ("TCP_KEEPIDLE", 10),  # seconds
    ("TCP_KEEPINTVL", 5),  # seconds
    ("TCP_KEEPCNT", 4),
    ("TCP_USER_TIMEOUT", _DEAD_AFTER_MS),
)


class _Options(Protocol):
    def setsockopt(self, level: int, option: int, value: int, /) -> None: ...


def tune(raw: _Options) -> None:
    """After half a minute without a sign of life from the other host the connection fails. Raises OSError."""
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _OPTIONS:
        if hasattr(socket, name):  # some platforms lack some
            raw.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
