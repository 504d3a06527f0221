"""Why a file of a table is where it is, or is not there, in one value and a few sentences."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

Fate = Literal[
    "live",
    "missing",
    "retained",
    "replaced",
    "fence",
    "left out",
    "rolled back",
    "uncommitted",
    "marked",
    "bookkeeping",
    "unknown",
]
"""
- ``live``: committed, and part of the table. ``missing``: the same, and not there.
- ``retained``: replaced, and kept for readers of older positions. ``replaced``: and due for removal, or removed.
- ``fence``: an empty file that occupies the name of a lost task attempt.
- ``left out``: its instant was committed without it. ``rolled back``: with its instant.
- ``uncommitted``: of an open instant. ``marked``: by an open instant, and not there.
- ``unknown``: not ours.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """What is known of one file. ``str`` of it is a paragraph."""

    path: str
    """Relative to the table."""
    fate: Fate
    is_there: bool
    instant: str | None
    """The instant that has written it, or was to; of a bookkeeping file the one that it belongs to."""
    position: int | None
    """Of the log entry that decided its fate."""
    why: str
    next: str
    """What will happen to it, and when."""
    command: str | None = None
    """What does that now; None where nothing is to be done, or nothing of ours would do it."""
    until: datetime | None = None
    """Until when it stays at least, by the store's clock."""
    rows: int | None = None
    """As its log entry says; None where none does. So are its bytes."""
    bytes: int | None = None
    rewritten_bytes: int | None = None
    """Of the files that were written once more to come to it, all in all; likewise."""
    made_of: tuple[str, ...] = ()
    """The small file that it was made of by filling that; several where the log does not tell which of them."""
    filled_into: tuple[str, ...] = ()
    """The file that its own rows went into, since it was small and was filled; likewise."""

    def __str__(self) -> str:
        there = "" if self.is_there else ", not there"
        now = f" Now: {self.command}" if self.command else ""
        return f"{self.path} ({self.fate}{there}): {self.why} {self.next}{now}"
