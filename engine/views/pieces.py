"""Bytes by number on a local disk of this process: what the stores that have one stand on."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol


class PiecesFailed(Exception):
    """What was read is not what was written; or the disk took no more."""

    def __init__(self, reason: str, *, is_refusal: bool = False, is_over: bool = True) -> None:
        """``is_refusal``: for want of room or rights on its disk. ``is_over``: nothing that is there can be used."""
        super().__init__(reason)
        self.is_refusal = is_refusal
        self.is_over = is_over


class Pieces(Protocol):
    """Made when something is first written to it; after ``close`` the next write makes another.

    Any method but ``close`` may raise PiecesFailed.
    """

    @property
    def path(self) -> Path:
        """The folder in which it has its files, or would have them."""
        ...

    @property
    def memory_bytes(self) -> int: ...

    @property
    def disk_bytes(self) -> int: ...

    def read(self, first: int, count: int) -> bytes:
        """Return the pieces of so many numbers one after the other, joined.

        Raises PiecesFailed where one of them is gone.
        """
        ...

    def write(self, pieces: Mapping[int, bytes | None]) -> None:
        """All of them or none, in place of what was there under their numbers; None: nothing any more."""
        ...

    def close(self) -> None:
        """Delete it; idempotent."""
        ...
