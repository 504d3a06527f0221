"""Waiting for many sockets at once, in one task of any event loop."""

import selectors
import socket
from typing import Any, Final

import anyio

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
        """The data of each socket that is ready, and its events."""
        return [(key.data, events) for key, events in self._selector.select(0)]

    def close(self) -> None:
        self._selector.close()
