"""What is fuzzed, by the name of its module."""

from collections.abc import Iterable
from importlib import import_module
from typing import Protocol, cast

NAMES = (
    "answers",
    "blocks",
    "checkpoints",
    "client_handshake",
    "entries",
    "fences",
    "frames",
    "http_requests",
    "requests",
    "reservations",
    "segments",
    "server_handshake",
    "wheres",
)


class Target(Protocol):
    def target(self, data: bytes, /) -> bool:
        """Whether somebody took the bytes for what they read. Returns if all that must hold did hold: whatever is
        raised is a finding.
        """

    def seeds(self) -> Iterable[bytes]:
        """Bytes of real encoders, which are taken."""


def load(name: str) -> Target:
    return cast("Target", import_module(f"{__name__}.{name}"))
