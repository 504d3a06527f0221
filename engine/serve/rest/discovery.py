"""Search for the tables below the roots of a service, by listing folders one level at a time.

Owns: which folders are listed, at what rate, and for how long a result is kept. Does not own: what a folder contains
(``FolderListing``), nor whether this library can read a table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import anyio

from tallymark.backends.concurrently import concurrently
from tallymark.backends.contract import Backend, folders_of
from tallymark.backends.errors import InvalidPath, NotPermitted
from tallymark.backends.events import EventLog
from tallymark.engine.errors import InvalidRequest, TallymarkError
from tallymark.engine.lazy import Lazy
from tallymark.engine.serve.roots import Roots
from tallymark.engine.serve.settings import PageSettings
from tallymark.engine.timeline.listing import HOODIE

CONCURRENCY = 16
"""Folders of one root that are listed at once: a thousand take some seconds on a remote store."""

PAGE_COUNT = 1000
"""Folders that are started together. Each has a task of 5 KB."""

_events = EventLog(__name__)


async def tables_below(backend: Backend, *, depth: int, folder_count: int) -> list[str]:
    """Return the paths of the tables at the root (``""``) and at most ``depth`` levels below it, sorted.

    A table is a folder that contains a folder ``.hoodie``; no tables are looked for in it, nor in folders whose name
    starts with "." or "_", or cannot be printed: requests cannot name those. Folders below the root that the store
    refuses to list are left out, and logged.

    Raises:
        InvalidRequest: that would take more than ``folder_count`` listings.
        BackendError: the root cannot be listed, or a folder did not answer.
    """
    started_s = anyio.current_time()
    tables: list[str] = []
    refused: list[tuple[str, Exception]] = []
    pending = [""]
    listed_count = 0

    async def visit(folder: str) -> None:
        try:
            names = await folders_of(backend, folder)
        except (InvalidPath, NotPermitted) as error:
            if not folder:
                raise
            refused.append((folder, error))
            return
        if HOODIE in names:
            tables.append(folder)
        elif _level(folder) < depth:
            prefix = f"{folder}/" if folder else ""
            pending.extend(f"{prefix}{name}" for name in names if _is_searched(name))

    while pending:
        page = pending[:PAGE_COUNT]
        del pending[:PAGE_COUNT]
        listed_count += len(page)
        if listed_count > folder_count:
            raise InvalidRequest(
                f"{backend.url} has more than {folder_count:,} folders down to {depth} levels: raise "
                "discover_folder_count, lower depth, or serve folders nearer to the tables"
            )
        await concurrently(visit, page, limit=CONCURRENCY)
    if refused:
        first, reason = min(refused, key=lambda each: each[0])
        _events.warning("folders.refused", url=backend.url, folders=len(refused), first=first, reason=reason)
    seconds = anyio.current_time() - started_s
    _events.debug("root.searched", url=backend.url, tables=len(tables), folders=listed_count, seconds=seconds)
    return sorted(tables)


@dataclass(frozen=True, slots=True)
class Found:
    """What the last search has found."""

    places: tuple[str, ...]
    """Tables, as ``place_of`` has them, sorted. Those below a root that has a problem are of the last search without
    one."""
    problems: Mapping[str, str]
    """By root, why it could not be searched."""


class Discovery:
    """The tables below the roots, searched when they are requested and the last result is older than ``discover_s``.

    All callers wait for one search. A root that does not answer delays it by ``discover_timeout_s`` at most.
    """

    def __init__(self, roots: Roots, settings: PageSettings) -> None:
        self._roots = roots
        self._settings = settings
        self._backends: dict[str, Backend] = {}
        """By root, kept so that the threads of a disk that hangs stay within the limit of one backend."""
        self._places: dict[str, Sequence[str]] = {}
        """By root, of its last search without a problem."""
        self._search = Lazy(self._search_all)
        self._expires_s = 0.0

    @property
    def is_due(self) -> bool:
        """Whether ``tables`` searches again."""
        return not self._search.is_loaded or anyio.current_time() >= self._expires_s

    async def tables(self) -> Found:
        if self._search.is_loaded and self.is_due:
            self._search = Lazy(self._search_all)
        return await self._search.get()

    async def _search_all(self) -> Found:
        problems: dict[str, str] = {}

        async def search(root: str) -> None:
            problem = await self._problem_of(root)
            if problem is not None:
                problems[root] = problem

        roots = self._roots.places
        await concurrently(search, roots, limit=len(roots))
        self._expires_s = anyio.current_time() + self._settings.discover_s
        return Found(tuple(sorted({place for places in self._places.values() for place in places})), problems)

    async def _problem_of(self, root: str) -> str | None:
        """Search the root. Return why that failed, or None."""
        timeout_s = self._settings.discover_timeout_s
        try:
            with anyio.fail_after(timeout_s):
                self._places[root] = await self._places_below(root)
        except TallymarkError as error:
            problem = str(error)
        except TimeoutError:
            problem = f"{root} was not searched within {timeout_s:g} s (discover_timeout_s)"
        else:
            return None
        _events.warning("root.unsearched", url=root, reason=problem)
        return problem

    async def _places_below(self, root: str) -> Sequence[str]:
        if root not in self._backends:
            self._backends[root] = self._roots.open(root)
        paths = await tables_below(
            self._backends[root], depth=self._settings.depth, folder_count=self._settings.discover_folder_count
        )
        return [f"{root.rstrip('/')}/{path}" if path else root for path in paths]


def _level(folder: str) -> int:
    return folder.count("/") + 1 if folder else 0


def _is_searched(name: str) -> bool:
    return not name.startswith((".", "_")) and name.isprintable()
