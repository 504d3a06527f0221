"""The parts that every job on a table shares: backend, log, clock, settings."""

import math
from dataclasses import InitVar, dataclass, field

import anyio

from tallymark.backends.contract import Backend
from tallymark.backends.errors import NotFound
from tallymark.backends.options import StorageOptions
from tallymark.engine.clock import Clock, SystemClock
from tallymark.engine.errors import TallymarkError
from tallymark.engine.rpc.commit_broker import CommitBroker
from tallymark.engine.settings import CommitSettings, LeaseSettings, ViewSettings
from tallymark.engine.timeline.log import CommitLog
from tallymark.engine.timeline.properties import PROPERTIES, TableProperties
from tallymark.engine.views.checkpoint_reader import Checkpoints
from tallymark.engine.views.memory_store import MemoryStore
from tallymark.engine.views.open import open_store
from tallymark.engine.views.view import View


class TableChanged(TallymarkError):
    """The properties of the table in storage are not those that were read. Nothing was changed."""


class TableMemory:
    """What was read of a table, for all jobs of one ``Table``. Belongs to one event loop."""

    def __init__(self, backend: Backend, settings: CommitSettings, clock: Clock) -> None:
        self.checkpoints = Checkpoints(backend)
        self.log = CommitLog(backend, settings, start=self.checkpoints, clock=clock)
        self.projected = 0
        """Entries up to this position are known to be projected."""
        self.projecting = anyio.Lock()
        self.maintaining = anyio.Lock()
        """Held by the job that maintains the table at its end. Others that end at that moment leave it to that one."""
        self.broker: CommitBroker | None = None
        """What decides commits of its jobs outside of this process; None before one of them has named it."""
        self.properties: tuple[TableProperties, bytes] | None = None
        """Those of the table, and their bytes; None before a job has read them."""
        self._backend = backend

    async def check(self) -> None:
        """Check that the table in storage is the one that was read. Raises TableChanged."""
        if self.properties is None:
            return
        try:
            data = await self._backend.get(PROPERTIES)
        except NotFound:
            data = b""
        if data != self.properties[1]:
            raise TableChanged(f"{self._backend.url}: {PROPERTIES} was replaced or removed since it was read")


@dataclass(slots=True)
class TableHandle:
    """Storage, the commit log and the parts that jobs share. Belongs to one event loop."""

    backend: Backend
    commit_settings: CommitSettings
    lease_settings: LeaseSettings
    clock: Clock = field(default_factory=SystemClock)
    storage: StorageOptions = field(default_factory=StorageOptions)
    """Options with which tasks reach the storage of ``backend``."""
    view_settings: ViewSettings = field(default_factory=ViewSettings)
    lasts: bool = False
    """Whether it serves more than one query and is closed afterwards: only then its view may have local files."""
    shared: InitVar[TableMemory | None] = None
    """What to continue from; None: nothing was read yet."""
    memory: TableMemory = field(init=False)
    base: float = field(init=False, default=math.inf)
    """The position at which its job has started, which its views answer for as long as they exist."""
    _views: list[View] = field(init=False, default_factory=list)
    """The last one follows the log. A caller that had an answer of an earlier one continues to use that, until what it
    names may be deleted.
    """

    def __post_init__(self, shared: TableMemory | None) -> None:
        self.memory = shared or TableMemory(self.backend, self.commit_settings, self.clock)

    @property
    def log(self) -> CommitLog:
        return self.memory.log

    @property
    def checkpoints(self) -> Checkpoints:
        return self.memory.checkpoints

    def view(self, properties: TableProperties) -> View:
        """Return the table's view as of the log's head. No I/O but that of a local store."""
        history = self.log.history
        if not self._views or self._is_outdated(self._views[-1]):
            keep = None if properties.readers == "table" else self.view_settings.keep_positions
            store = open_store(self.view_settings) if self.lasts else MemoryStore()
            self._views.append(View(store, base=self.checkpoints.base, keep_positions=keep, pinned=self.base))
        view = self._views[-1]
        view.sync(history)
        for earlier in self._views[:-1]:
            earlier.release(history)
        return view

    async def preload(self, properties: TableProperties) -> None:
        """Read every partition of the view, where the settings ask for that."""
        if self.view_settings.preload:
            await self.view(properties).preload()

    @property
    def view_memory_bytes(self) -> int:
        """What the blocks of the views use in memory."""
        return sum(view.statistics().store.memory_bytes for view in self._views)

    def close(self) -> None:
        """Release the memory and local files of the views."""
        while self._views:
            self._views.pop().close()

    def _is_outdated(self, view: View) -> bool:
        """Return whether the view was made before the log was read at all, or is behind and cannot follow."""
        history = self.log.history
        return view.head < history.base or (view.head < history.head and not self.view_settings.incremental)
