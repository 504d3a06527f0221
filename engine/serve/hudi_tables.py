"""The tables of Hudi that a service serves, by the marker directories that Hudi's clients name."""

import re

from anyio.abc import TaskGroup

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.markers.engine import MarkerEngine
from tallymark.engine.serve.hudi_markers import HudiMarkers
from tallymark.engine.serve.memory import Memory
from tallymark.engine.serve.roots import OpenTables, Roots, place_of
from tallymark.engine.settings import MarkerSettings

_FOLDER = re.compile(r"(?P<base>.+)/\.hoodie/\.temp/(?P<instant>[0-9A-Za-z_-]+)/?")

SCRATCH = ".hoodie/.temp/.unfinished"
"""Where a table of Hudi on a local disk has objects that are being put: Hudi ignores it, and a deletion removes it."""


class HudiTables:
    """The owner of ``tasks`` outlives it."""

    def __init__(self, roots: Roots, tasks: TaskGroup, settings: MarkerSettings, memory: Memory) -> None:
        self._roots = roots
        self._tasks = tasks
        self._settings = settings
        self._memory = memory
        self._tables = OpenTables(self._open, memory)

    def find(self, folder: str) -> tuple[HudiMarkers, str]:
        """Return the markers of the table to which a marker directory belongs, and its instant.

        Raises:
            InvalidRequest: it cannot be a marker directory, or is below none of the roots (``NotServed``).
            Overloaded: there is no memory for one more table.
        """
        match = _FOLDER.fullmatch(folder)
        if match is None:
            raise InvalidRequest(f"markerdirpath={folder!r} is not <table>/.hoodie/.temp/<instant>")
        return self._tables.get(place_of(match["base"])), match["instant"]

    def _open(self, place: str) -> HudiMarkers:
        backend = self._roots.open(place, scratch=SCRATCH)
        return HudiMarkers(backend, MarkerEngine(backend, self._settings, self._tasks), self._settings, self._memory)
