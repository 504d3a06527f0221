"""The name of a marker: a data file below the table's base path, and how it is being written.

As text it is Hudi's: ``[<partition path>/]<data file name>.marker.<IO>``, one line of a marker segment. The engine
keeps markers as such lines: a line takes two thirds of the memory of a ``MarkerName``, a set of lines is made and
searched several times as fast, and the garbage collector passes over a million of them. Callers see ``MarkerName``.
"""

import re
from dataclasses import dataclass
from typing import Literal, cast, get_args

from tallymark.backends.contract import PATH_BYTES_MAX, check_path
from tallymark.backends.errors import InvalidPath
from tallymark.engine.errors import CorruptObject, InvalidRequest

MarkerIo = Literal["CREATE", "MERGE", "APPEND"]

INFIX = ".marker."

_IOS = frozenset(get_args(MarkerIo))

_PLAIN = re.compile(
    rf"[!-\-0-~][ -.0-~]*(?:/[!-\-0-~][ -.0-~]*)*{re.escape(INFIX)}(?:{'|'.join(get_args(MarkerIo))})", re.ASCII
)
"""Matches most lines: ASCII, and no path component starts with a space or a dot. One match accepts such a line."""


def marker_line(path: str, io: str = "CREATE") -> str:
    """Return the line of a marker, from a caller's path.

    Raises:
        InvalidRequest: the path could leave the table, break a line or be read as another name.
    """
    line = f"{path}{INFIX}{io}"
    if io not in _IOS:
        raise InvalidRequest(f"marker {path!r}: io {io!r} is none of {', '.join(get_args(MarkerIo))}")
    if not _is_plain(line):
        _check_path(path, line)
    return line


def check_line(text: str) -> str:
    """Return a text from storage unchanged if it is a marker's line. Raises CorruptObject."""
    if not _is_plain(text):
        path, infix, io = text.rpartition(INFIX)
        if not infix:
            raise CorruptObject(f"{text!r} is not a marker name: it lacks {INFIX!r}")
        try:
            marker_line(path, io)
        except InvalidRequest as error:
            raise CorruptObject(f"{text!r} is not a marker name: {error}") from error
    return text


def check_lines(text: str) -> list[str]:
    """Return the lines of a text, each checked as by ``check_line``. Raises CorruptObject.

    Plain lines are checked together, at a third of the cost: a million in half a second.
    """
    lines = text.split("\n")
    are_plain = all(map(_PLAIN.fullmatch, lines)) and text.count(INFIX) == len(lines)
    if not are_plain or max(map(len, lines)) > PATH_BYTES_MAX:
        for line in lines:
            check_line(line)
    return lines


def path_of(line: str) -> str:
    """Return the data file that a line names."""
    return line[: line.rindex(INFIX)]


@dataclass(frozen=True, slots=True, order=True)
class MarkerName:
    """Made by ``of`` from a caller's path, or by ``parse`` from storage; both check it."""

    path: str
    """The data file, relative to the base path and always below it."""
    io: MarkerIo = "CREATE"

    @classmethod
    def of(cls, path: str, io: str = "CREATE") -> "MarkerName":
        """Check and return the name. Raises InvalidRequest for a path that could leave the table, break a line or be
        read as another name.
        """
        marker_line(path, io)
        return cls(path, cast("MarkerIo", io))

    @classmethod
    def parse(cls, text: str) -> "MarkerName":
        """Return the name that ``str`` wrote. Raises CorruptObject."""
        path, _, io = check_line(text).rpartition(INFIX)
        return cls(path, cast("MarkerIo", io))

    def __str__(self) -> str:
        return f"{self.path}{INFIX}{self.io}"


def _is_plain(line: str) -> bool:
    return len(line) <= PATH_BYTES_MAX and _PLAIN.fullmatch(line) is not None and line.count(INFIX) == 1


def _check_path(path: str, line: str) -> None:
    if INFIX in path:
        raise InvalidRequest(f"marker {path!r}: {INFIX!r} cannot stand in a data file's path; rename the file")
    try:
        check_path(path)
        check_path(line)
    except InvalidPath as error:
        raise InvalidRequest(f"marker name: {error}") from error
