"""Roots: what a service serves, and the tables below them that it has open."""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from tallymark.backends.contract import Backend
from tallymark.backends.open import open_backend
from tallymark.backends.options import StorageOptions
from tallymark.engine.errors import InvalidRequest
from tallymark.engine.serve.memory import Memory

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?=/)")

_SAME = {"s3a": "s3", "s3n": "s3"}
"""Schemes that name the same place."""


class NotServed(InvalidRequest):
    """The place is below no root."""


def place_of(url: str) -> str:
    """Return the one form of a URL or path of which there are several: ``file:/a``, ``file:///a`` and ``/a`` are
    ``/a``, and ``s3a:`` is ``s3:``.

    Raises:
        InvalidRequest: it is relative, or could be another place than it seems to be.
    """
    match = _SCHEME.match(url)
    scheme = "" if match is None else _SAME.get(match[1].lower(), match[1].lower())
    rest = url if match is None else url[match.end() :]
    if scheme == "file":
        scheme, rest = "", f"/{rest.lstrip('/')}"
    authority, path = ("//", rest.removeprefix("//")) if scheme else ("", rest.removeprefix("/"))
    parts = path.rstrip("/").split("/")
    is_absolute = rest.startswith("//") if scheme else rest.startswith("/")
    if not is_absolute or any(part in ("", ".", "..") for part in parts) or not path.isprintable():
        raise InvalidRequest(
            f"{url!r} is not an absolute path, or a URL, without empty, '.' and '..' segments and control characters"
        )
    return f"{scheme}:{authority}{'/'.join(parts)}" if scheme else f"/{'/'.join(parts)}"


@dataclass(frozen=True, slots=True)
class Root:
    """A table, or a folder of tables, and how its storage is reached."""

    url: str
    options: StorageOptions | None = None


class Roots:
    """What is served. Nothing outside of it is read, written or deleted."""

    def __init__(self, roots: Sequence[Root]) -> None:
        """Raises InvalidRequest for a root that ``place_of`` refuses, or none."""
        if not roots:
            raise InvalidRequest("no root is given: name the tables to serve, or folders above them")
        self._options = {place_of(root.url): root.options for root in roots}
        self._places = sorted(self._options, key=len, reverse=True)

    @classmethod
    def of(cls, *urls: str) -> "Roots":
        return cls([Root(url) for url in urls])

    @property
    def places(self) -> list[str]:
        return sorted(self._places)

    def open(self, place: str, *, scratch: str | None = None) -> Backend:
        """Return the storage of a place. No I/O but to resolve symbolic links of a local table's path.

        ``scratch`` is where a local disk has objects that are being put; None: Tallymark's own folder in the table.

        Raises NotServed for one that is below none of the roots.
        """
        root = self.root_of(place)
        if place.startswith("/"):
            return open_backend(Path(os.path.realpath(place)), scratch=scratch)
        return open_backend(place, options=self._options[root])

    def options_of(self, place: str) -> StorageOptions | None:
        """Return how the storage of a place is reached. Raises NotServed."""
        return self._options[self.root_of(place)]

    def root_of(self, place: str) -> str:
        """Return the root that a place is below, also where links lead it. Raises NotServed."""
        root = next((root for root in self._places if _is_below(place, root)), None)
        is_local = place.startswith("/")
        if root is None or (is_local and not _is_below(os.path.realpath(place), os.path.realpath(root))):
            raise NotServed(f"{place} is below none of the roots that are served here")
        return root


class Closeable(Protocol):
    """A table that a service has open."""

    @property
    def is_idle(self) -> bool:
        """Whether no request and no instant needs it."""
        ...

    @property
    def memory_bytes(self) -> int:
        """What it uses, without its instants."""
        ...

    def release(self) -> None:
        """Release what no request needs and can be read again."""
        ...

    def close(self) -> None: ...


T = TypeVar("T", bound=Closeable)


class OpenTables(Generic[T]):
    """Open tables of a listener by their place. Idle ones are closed when the service needs their memory."""

    def __init__(self, open_table: Callable[[str], T], memory: Memory) -> None:
        self._open_table = open_table
        self._memory = memory
        self._tables: dict[str, T] = {}

    def get(self, place: str) -> T:
        """Return the table, opened if it is not.

        Raises:
            NotServed: it is below no root.
            Overloaded: there is no memory for one more.
        """
        table = self._tables.get(place) or self._add(place)
        self._memory.used(table)
        return table

    def find(self, place: str) -> T | None:
        """Return the table, for a request that uses it, if it is open."""
        table = self._tables.get(place)
        if table is not None:
            self._memory.used(table)
        return table

    def drop(self, table: T) -> None:
        """Close the table, if it is open; the next request for it opens it again."""
        for place, each in self._tables.items():
            if each is table:
                self._close(place)
                return

    def close(self) -> None:
        for place in list(self._tables):
            self._close(place)

    def _add(self, place: str) -> T:
        self._memory.check_room()
        table = self._tables[place] = self._open_table(place)

        def release() -> None:
            table.release()
            if table.is_idle:
                self._close(place)

        self._memory.add(table, lambda: table.memory_bytes, release)
        return table

    def _close(self, place: str) -> None:
        table = self._tables.pop(place)
        self._memory.forget(table)
        table.close()


def _is_below(place: str, root: str) -> bool:
    return place == root or place.startswith(f"{root.rstrip('/')}/")
