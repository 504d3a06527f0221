"""What a trial asks of both sides: a server of markers on a local disk, in a process of its own, that can be killed."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol


class Unanswered(Exception):
    """No answer, or one that says that the marker was not made durable."""


class MarkerClient(Protocol):
    def create(self, path: str) -> bool:
        """True: the data file of this path may be written, since its marker is durable. False: the server's no.

        Raises:
            Unanswered: neither of these.
        """
        ...

    def give_up(self) -> None:
        """From any thread, once the server has been killed: whoever waits for an answer waits no longer."""
        ...

    def close(self) -> None: ...


class MarkerServer(Protocol):
    @property
    def pid(self) -> int: ...

    @property
    def port(self) -> int: ...

    def client(self, instant: str, *, port: int | None = None) -> MarkerClient:
        """With a connection of its own. ``port`` is that of a proxy before the server."""
        ...

    def names(self, instant: str) -> frozenset[str]:
        """The markers, ``<data file>.marker.CREATE``, as a server that starts now reads them. Raises Unanswered."""
        ...


class Side(Protocol):
    @property
    def title(self) -> str: ...

    def server(self, table: Path) -> AbstractContextManager[MarkerServer]:
        """One for the block, of all instants of the table. It may be killed meanwhile."""
        ...
