"""The parts that every job on a table shares: backend, log, clock, settings."""

from dataclasses import dataclass, field

from tallymark.backends.contract import Backend
from tallymark.backends.options import StorageOptions
from tallymark.engine.clock import Clock, SystemClock
from tallymark.engine.settings import CommitSettings, LeaseSettings, ViewSettings
from tallymark.engine.timeline.log import CommitLog
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.timeline.reservation import Reservation
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
    """How tasks reach what ``backend`` reaches."""
    view_settings: ViewSettings = field(default_factory=ViewSettings)
    lasts: bool = False
    """Whether it is for more than one question, and closed in the end: only then its view may have local files."""
    checkpoints: Checkpoints = field(init=False)
    log: CommitLog = field(init=False)
    projected: int = 0
    """Entries up to this position are known to be projected."""
    own_numbers: dict[int, Reservation] = field(default_factory=dict)
    """Those under which this process has begun, as long as their objects are there: see ``registration``."""
    given_back: set[int] = field(default_factory=set)
    """Of these the ones whose instants came to nothing."""
    over_numbers: set[int] = field(default_factory=set)
    """Those of others that were found to be over. They stay so, and need not be looked at again."""
    _views: list[View] = field(init=False, default_factory=list)
    """The last is the one that follows the log; who had an answer of an earlier one goes on asking that."""

    def __post_init__(self) -> None:
        self.checkpoints = Checkpoints(self.backend)
        self.log = CommitLog(self.backend, self.commit_settings, start=self.checkpoints)

    def view(self, properties: TableProperties) -> View:
        """Return what the table holds by all that was read of its log. No I/O but that of a local store."""
        history = self.log.history
        if not self._views or self._is_outdated(self._views[-1]):
            keep = None if properties.readers == "table" else self.view_settings.keep_positions
            store = open_store(self.view_settings) if self.lasts else MemoryStore()
            self._views.append(View(store, base=self.checkpoints.base, keep_positions=keep))
        view = self._views[-1]
        view.sync(history)
        return view

    async def preload(self, properties: TableProperties) -> None:
        """Read every partition of the view, where the settings ask for that."""
        if self.view_settings.preload:
            await self.view(properties).preload()

    def close(self) -> None:
        """Give back what views have of memory and local files."""
        while self._views:
            self._views.pop().close()

    def _is_outdated(self, view: View) -> bool:
        """Return whether it was made before the log was read at all; or is behind, and may not follow."""
        history = self.log.history
        return view.head < history.base or (view.head < history.head and not self.view_settings.incremental)
