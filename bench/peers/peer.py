"""The verbs of a peer."""

from collections.abc import Sequence
from typing import Protocol


class Peer(Protocol):
    """Blocking calls, each with paths below one root."""

    @property
    def name(self) -> str:
        """What the library is called."""
        ...

    def get(self, path: str) -> object: ...

    def put(self, path: str, data: bytes) -> None: ...

    def put_new(self, path: str, data: bytes) -> None: ...

    def list(self, directory: str) -> int:
        """How many objects there are, found with their sizes and times."""
        ...

    def delete(self, paths: Sequence[str]) -> None: ...

    def data_file(self, path: str, pieces: Sequence[bytes]) -> None:
        """A new object out of bytes that come piece by piece, as from a Parquet writer."""
        ...
