"""The parts that every job on a table shares: backend, log, clock, settings."""

from dataclasses import dataclass, field

from tallymark.backends.contract import Backend
from tallymark.backends.options import StorageOptions
from tallymark.engine.clock import Clock, SystemClock
from tallymark.engine.settings import CommitSettings, LeaseSettings, ViewSettings
from tallymark.engine.timeline.log import CommitLog
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.views.checkpoint_reader import Checkpoints
from tallymark.engine.views.memory_store import MemoryStore
from tallymark.engine.views.open import open_store
from tallymark.engine.views.view import View


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
    checkpoints: Checkpoints = field(init=False)
    log: CommitLog = field(init=False)
    projected: int = 0
    """Entries up to this position are known to be projected."""
    _views: list[View] = field(init=False, default_factory=list)
    """The last one follows the log. A caller that had an answer of an earlier one continues to use that, until what it
    names may be deleted.
    """

    def __post_init__(self) -> None:
        self.checkpoints = Checkpoints(self.backend)
        self.log = CommitLog(self.backend, self.commit_settings, start=self.checkpoints, clock=self.clock)

    def view(self, properties: TableProperties) -> View:
        """Return the table's view as of the log's head. No I/O but that of a local store."""
        history = self.log.history
        if not self._views or self._is_outdated(self._views[-1]):
            keep = None if properties.readers == "table" else self.view_settings.keep_positions
            store = open_store(self.view_settings) if self.lasts else MemoryStore()
            self._views.append(View(store, base=self.checkpoints.base, keep_positions=keep))
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
