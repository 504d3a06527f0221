"""What every job on a table holds in its hand."""

from dataclasses import dataclass, field

from tallymark.backends.contract import Backend
from tallymark.backends.options import StorageOptions
from tallymark.engine.clock import Clock, SystemClock
from tallymark.engine.settings import CommitSettings, LeaseSettings, ViewSettings
from tallymark.engine.timeline.log import CommitLog
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.timeline.reservation import Reservation
from tallymark.engine.views.checkpoints import Checkpoints
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
    checkpoints: Checkpoints = field(init=False)
    log: CommitLog = field(init=False)
    projected: int = 0
    """Entries up to this position are known to be projected."""
    own_numbers: dict[int, Reservation] = field(default_factory=dict)
    """Those under which this process has begun, as long as their objects are there: see ``numbers``."""
    given_back: set[int] = field(default_factory=set)
    """Of these the ones whose instants came to nothing."""
    over_numbers: set[int] = field(default_factory=set)
    """Those of others that were found to be over. They stay so, and need not be looked at again."""
    _view: View | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.checkpoints = Checkpoints(self.backend)
        self.log = CommitLog(self.backend, self.commit_settings, start=self.checkpoints)

    def view(self, properties: TableProperties) -> View:
        """What the table holds by all that was read of its log. No I/O but that of a local store."""
        is_behind = self._view is not None and self._view.head < self.log.history.base  # made before the log was read
        if self._view is None or is_behind or not self.view_settings.incremental:
            keep = None if properties.readers == "table" else self.view_settings.keep_positions
            self._view = View(base=self.checkpoints.base, keep_positions=keep)
        self._view.sync(self.log.history)
        return self._view

    def close(self) -> None:
        """Give back what the view has of memory and local files."""
        if self._view is not None:
            self._view.close()
            self._view = None
