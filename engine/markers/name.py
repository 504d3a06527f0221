"""The name of a marker: a data file below the table's base path, and how it is being written.

As text it is Hudi's: ``[<partition path>/]<data file name>.marker.<IO>``, one line of a marker segment.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from tallymark.backends.contract import check_path
from tallymark.backends.errors import InvalidPath
from tallymark.engine.errors import CorruptObject, InvalidRequest

MarkerIo = Literal["CREATE", "MERGE", "APPEND"]

INFIX = ".marker."


@dataclass(frozen=True, slots=True, order=True)
class MarkerName:
    """Made by ``of`` from a caller's words, or by ``parse`` from storage; both have checked it."""

    path: str
    """The data file, relative to the base path: it stays below it."""
    io: MarkerIo = "CREATE"

    @classmethod
    def of(cls, path: str, io: str = "CREATE") -> "MarkerName":
        """Raises InvalidRequest for a path that could leave the table, break a line or end up as another's name."""
        if io not in get_args(MarkerIo):
            raise InvalidRequest(f"marker {path!r}: io {io!r} is none of {', '.join(get_args(MarkerIo))}")
        if INFIX in path:
            raise InvalidRequest(f"marker {path!r}: {INFIX!r} cannot stand in a data file's path; rename the file")
        name = cls(path, io)  # type: ignore[arg-type]  # checked above
        try:
            check_path(path)
            check_path(str(name))
        except InvalidPath as error:
            raise InvalidRequest(f"marker name: {error}") from error
        return name

    @classmethod
    def parse(cls, text: str) -> "MarkerName":
        """The name that ``str`` wrote. Raises CorruptObject."""
        path, infix, io = text.rpartition(INFIX)
        if not infix:
            raise CorruptObject(f"{text!r} is no marker name: it lacks {INFIX!r}")
        try:
            return cls.of(path, io)
        except InvalidRequest as error:
            raise CorruptObject(f"{text!r} is no marker name: {error}") from error

    def __str__(self) -> str:
        return f"{self.path}{INFIX}{self.io}"
