"""A proxy that lets every question through to a server and, once it is told to, loses one answer."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

_READ_BYTES = 65536
_END_TIMEOUT_S = 10.0


@dataclass(slots=True)
class LosingProxy:
    server_port: int
    listener: socket.socket
    lost: threading.Event = field(default_factory=threading.Event)
    """Set once an answer was lost."""
    _is_armed: threading.Event = field(default_factory=threading.Event)
    _open: list[socket.socket] = field(default_factory=list)

    @property
    def port(self) -> int:
        found: int = self.listener.getsockname()[1]
        return found

    def lose_the_next(self) -> None:
        """What the server sends next goes nowhere, and the connection that it was for ends."""
        self._is_armed.set()

    def accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.server_port))
                self._open += [client, server]
                threading.Thread(target=self._carry, args=(client, server), daemon=True).start()
                threading.Thread(target=self._carry, args=(server, client, True), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket, is_answer: bool = False) -> None:
        with suppress(OSError):
            while data := source.recv(_READ_BYTES):
                if is_answer and self._is_armed.is_set():
                    self._is_armed.clear()
                    self.lost.set()
                    break
                sink.sendall(data)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        for each in (self.listener, *self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@contextmanager
def losing_proxy(server_port: int) -> Iterator[LosingProxy]:
    proxy = LosingProxy(server_port, socket.create_server(("127.0.0.1", 0)))
    accepting = threading.Thread(target=proxy.accept, daemon=True)
    accepting.start()
    try:
        yield proxy
    finally:
        proxy.close()
        accepting.join(_END_TIMEOUT_S)
