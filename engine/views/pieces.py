"""Bytes by number on a local disk of this process: the base of the stores with a disk."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol


class PiecesFailed(Exception):
    """The bytes read are not those written; or the disk accepted no more."""

    def __init__(self, reason: str, *, is_refusal: bool = False, is_over: bool = True) -> None:
        """``is_refusal``: for lack of space or permission on its disk. ``is_over``: nothing stored can be used any
        more.
        """
        super().__init__(reason)
        self.is_refusal = is_refusal
        self.is_over = is_over


class Pieces(Protocol):
    """Created by the first write; after ``close`` the next write creates another.

    Any method but ``close`` may raise PiecesFailed.
    """

    @property
    def path(self) -> Path:
        """The folder of its files, which need not exist yet."""
        ...

    @property
    def memory_bytes(self) -> int: ...

    @property
    def disk_bytes(self) -> int: ...

    def read(self, first: int, count: int) -> bytes:
        """Return this many pieces from a number on, joined.

        Raises PiecesFailed where one of them is missing.
        """
        ...

    def write(self, pieces: Mapping[int, bytes | None]) -> None:
        """Write all of these or none, in place of earlier bytes of their numbers; None deletes."""
        ...

    def close(self) -> None:
        """Delete it; idempotent."""
        ...
