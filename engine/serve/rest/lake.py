"""All tables below the roots of a service: which there are, and one summary of each.

Nothing is read unless it is requested: a lake that no one looks at costs no request.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import anyio
from anyio.abc import TaskGroup

from tallymark.backends.errors import Unavailable
from tallymark.backends.events import EventLog
from tallymark.engine.documents.summary import SummaryDocument, summary_of_unreadable
from tallymark.engine.errors import CorruptObject, InvalidRequest, Overloaded, TallymarkError
from tallymark.engine.serve.logs import no_request
from tallymark.engine.serve.memory import Memory
from tallymark.engine.serve.rest.discovery import Discovery
from tallymark.engine.serve.rest.lake_table import LakeTable, id_of
from tallymark.engine.serve.rest.live_jobs import LiveJobs
from tallymark.engine.serve.roots import OpenTables, Roots
from tallymark.engine.serve.settings import PageSettings
from tallymark.engine.settings import ViewSettings

READ_AT_ONCE = 64
"""Tables of one root that are read at once for their summaries; a root that does not answer delays no other. The first
summary of one takes eight requests one after the other: 200 tables take a second on a store that is 30 ms away.
"""


_events = EventLog(__name__)


class NoSuchTable(InvalidRequest):
    """No table has this id, or the client may not read it: the answer does not show which."""


@dataclass(slots=True)
class _Summary:
    read_at: float = float("-inf")
    document: SummaryDocument | None = None
    is_being_read: bool = False
    changed: anyio.Event = field(default_factory=anyio.Event)


class Lake:
    """Belongs to one event loop. The owner of ``tasks`` outlives it."""

    def __init__(
        self,
        roots: Roots,
        settings: PageSettings,
        tasks: TaskGroup,
        *,
        views: ViewSettings,
        memory: Memory,
        live: LiveJobs,
    ) -> None:
        self._roots = roots
        self._settings = settings
        self._tasks = tasks
        self._views = views
        self._live = live
        self._discovery = Discovery(roots, settings)
        self._tables = OpenTables(self._open, memory)
        self._summaries: dict[str, _Summary] = {}
        self._places: dict[str, str] = {}
        """By id, of every table that was found."""
        self._found: Sequence[str] | None = None
        self._is_searching = False
        self._limits = {place: anyio.CapacityLimiter(READ_AT_ONCE) for place in roots.places}
        self.problems: dict[str, str] = {}
        """Roots that could not be searched, and why."""

    def close(self) -> None:
        self._tables.close()

    def is_written(self, table: LakeTable) -> bool:
        """Return whether a job that uses the service beside this one is writing the table."""
        return table.place in self._live.places()

    async def table(self, id_: str, may_read: Callable[[str], bool]) -> LakeTable:
        """Return the table with an id. Raises NoSuchTable, also for one that ``may_read`` returns False for."""
        if id_ not in self._places:
            await self._search()
        place = self._places.get(id_)
        if place is None or not may_read(place):
            raise NoSuchTable(f"there is no table {id_!r} that may be read here; /v1/tables lists those that may")
        return self._tables.get(place)

    def changed(self, table: LakeTable) -> None:
        """Read the table again for the next request: an action has changed it."""
        table.forget_jobs()
        if summary := self._summaries.get(table.place):
            summary.read_at = float("-inf")

    async def summaries(self, may_read: Callable[[str], bool]) -> list[SummaryDocument]:
        """Return a summary of each table, at most ``poll_s`` old, sorted by URL. One that is not read after ``wait_s``,
        with the search for tables, is as it was last, or states that it was not read.
        """
        until = anyio.current_time() + self._settings.wait_s
        places = [place for place in await self._find() if may_read(place)]
        now = anyio.current_time()
        for place in places:
            summary = self._summaries.setdefault(place, _Summary())
            if not summary.is_being_read and now - summary.read_at >= self._settings.poll_s:
                summary.is_being_read = True
                with no_request():  # others wait for it, too
                    self._tasks.start_soon(self._summarize, place, summary)
        with anyio.CancelScope(deadline=until):
            for place in places:
                while (summary := self._summaries[place]).is_being_read:
                    await summary.changed.wait()
        found = [self._summaries[place].document or self._unread(place) for place in places]
        return sorted(found, key=lambda summary: summary["url"])

    async def _summarize(self, place: str, summary: _Summary) -> None:
        try:
            async with self._limits[self._roots.root_of(place)]:
                with anyio.fail_after(self._settings.discover_timeout_s):
                    summary.document = await self._tables.get(place).summary()
        except Overloaded as error:  # others are being read: the next query finds room
            summary.document = summary.document or self._unreadable(place, error)
        except TallymarkError as error:
            summary.document = self._unreadable(place, error)
        except TimeoutError:
            summary.document = self._unread(place)
        except Exception:  # of this table: no other one is to be missing
            _events.fault("table.failed", url=place)
            summary.document = self._unreadable(place, CorruptObject("the service failed; its log says how"))
        finally:
            summary.read_at, summary.is_being_read = anyio.current_time(), False
            summary.changed.set()
            summary.changed = anyio.Event()

    def _unread(self, place: str) -> SummaryDocument:
        return self._unreadable(place, Unavailable("its storage has not answered yet"))

    def _unreadable(self, place: str, error: TallymarkError) -> SummaryDocument:
        try:
            url = self._tables.get(place).url
        except TallymarkError:  # its storage cannot be opened, or there is no memory for it
            url = place
        return summary_of_unreadable(id_of(place), url, error)

    async def _find(self) -> Sequence[str]:
        """Return the places that the last search has found; the first one is awaited, later ones run beside."""
        if self._found is None:
            await self._search()
        elif self._discovery.is_due and not self._is_searching:
            self._is_searching = True
            with no_request():
                self._tasks.start_soon(self._search_beside)
        assert self._found is not None
        return self._found

    async def _search_beside(self) -> None:
        try:
            await self._search()
        except Exception:  # the tables that are known are served on
            _events.fault("search.failed", instant=None)
        finally:
            self._is_searching = False

    async def _search(self) -> None:
        found = await self._discovery.tables()
        self.problems = dict(found.problems)
        self._places = {id_of(place): place for place in found.places}
        for place in self._summaries.keys() - set(found.places):
            if not self._summaries[place].is_being_read:
                del self._summaries[place]
        self._found = found.places

    def _open(self, place: str) -> LakeTable:
        options = self._roots.options_of(place)
        return LakeTable(place, self._roots.open(place), options, self._views, self._live)
