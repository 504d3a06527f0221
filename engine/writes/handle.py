"""What every job on a table holds in its hand."""

from dataclasses import dataclass, field

from tallymark.backends.contract import Backend
from tallymark.backends.options import StorageOptions
from tallymark.engine.clock import Clock, SystemClock
from tallymark.engine.settings import CommitSettings, LeaseSettings
from tallymark.engine.timeline.log import CommitLog


@dataclass(slots=True)
class TableHandle:
    """Storage, the commit log and the parts that jobs share. Belongs to one event loop."""

    backend: Backend
    commit_settings: CommitSettings
    lease_settings: LeaseSettings
    clock: Clock = field(default_factory=SystemClock)
    storage: StorageOptions = field(default_factory=StorageOptions)
    """How tasks reach what ``backend`` reaches."""
    log: CommitLog = field(init=False)
    projected: int = 0
    """Entries up to this position are known to be projected."""

    def __post_init__(self) -> None:
        self.log = CommitLog(self.backend, self.commit_settings)
