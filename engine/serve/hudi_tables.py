"""The tables of Hudi that a service serves: those below its roots, opened when they are asked for."""

import os
import re
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

from anyio.abc import TaskGroup

from tallymark.backends.contract import Backend
from tallymark.backends.open import open_backend
from tallymark.backends.options import StorageOptions
from tallymark.engine.errors import InvalidRequest, Overloaded
from tallymark.engine.markers.engine import MarkerEngine
from tallymark.engine.serve.hudi_markers import HudiMarkers
from tallymark.engine.settings import MarkerSettings

_FOLDER = re.compile(r"(?P<base>.+)/\.hoodie/\.temp/(?P<instant>[0-9A-Za-z_-]+)/?")

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?=/)")

_SAME = {"s3a": "s3", "s3n": "s3"}
"""Schemes that name the same place."""

SCRATCH = ".hoodie/.temp/.unfinished"
"""Where a table of Hudi on a local disk has objects that are being put: Hudi ignores it, and a deletion removes it."""

TABLES_MAX = 1000
"""Tables held open at once; those without a served instant are closed first."""


class NotServed(InvalidRequest):
    """The place is below no root."""


def place_of(url: str) -> str:
    """Return the one form of a URL or path that Hudi names in several: ``file:/a``, ``file:///a`` and ``/a`` are
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


class HudiTables:
    """Tables by their place. The owner of ``tasks`` outlives it."""

    def __init__(
        self,
        roots: Sequence[str],
        tasks: TaskGroup,
        settings: MarkerSettings,
        *,
        options: StorageOptions | None = None,
    ) -> None:
        """Raises InvalidRequest for a root that ``place_of`` refuses, or none."""
        if not roots:
            raise InvalidRequest("no root is given: name the tables to serve, or folders above them")
        self._roots = [place_of(root) for root in roots]
        self._tasks = tasks
        self._settings = settings
        self._options = options
        self._tables: OrderedDict[str, HudiMarkers] = OrderedDict()

    def find(self, folder: str) -> tuple[HudiMarkers, str]:
        """Return the markers of the table to which a marker directory belongs, and its instant. No I/O but to resolve
        symbolic links of a local table's path.

        Raises:
            InvalidRequest: it cannot be a marker directory, or is below none of the roots (``NotServed``).
            Overloaded: too many tables are in use.
        """
        match = _FOLDER.fullmatch(folder)
        if match is None:
            raise InvalidRequest(f"markerdirpath={folder!r} is not <table>/.hoodie/.temp/<instant>")
        place = place_of(match["base"])
        if place not in self._tables:
            self._make_room()
            backend = self._open(place)
            engine = MarkerEngine(backend, self._settings, self._tasks)
            self._tables[place] = HudiMarkers(backend, engine, self._settings)
        self._tables.move_to_end(place)
        return self._tables[place], match["instant"]

    def _open(self, place: str) -> Backend:
        root = next((root for root in self._roots if _is_below(place, root)), None)
        if root is not None and not place.startswith("/"):
            return open_backend(place, options=self._options)
        if root is not None and _is_below(real := os.path.realpath(place), os.path.realpath(root)):
            return open_backend(Path(real), scratch=SCRATCH)
        raise NotServed(f"{place} is below none of the roots that are served here")

    def _make_room(self) -> None:
        if len(self._tables) < TABLES_MAX:
            return
        idle = next((place for place, markers in self._tables.items() if markers.is_idle), None)
        if idle is None:
            raise Overloaded(f"{TABLES_MAX} tables are in use", retry_after_s=10.0)
        del self._tables[idle]


def _is_below(place: str, root: str) -> bool:
    return place == root or place.startswith(f"{root.rstrip('/')}/")
