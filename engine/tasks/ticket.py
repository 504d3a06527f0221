"""Ticket of a job: the value that its tasks get."""

from dataclasses import dataclass, field

import pyarrow as pa

from tallymark.backends.options import StorageOptions
from tallymark.engine.partitions.guard import PartitionGuard
from tallymark.engine.partitions.static import StaticPartition
from tallymark.engine.rpc.handshake import ServiceAddress
from tallymark.engine.settings import MarkerKind, TaskSettings, ViewSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTicket:
    """Everything that a task needs to write files of one job, in any process. Picklable; contains no credentials of
    storage.
    """

    url: str
    """The table's base path, as ``open_backend`` takes it."""
    options: StorageOptions
    """Storage options beside the URL."""
    instant: str
    base: int
    """The position of the commit log that the job had read when it started; lookups of its tasks are as of there."""
    schema: pa.Schema
    """The schema to which every batch is cast."""
    partition_by: tuple[str, ...]
    staging: str
    """The instant's staging directory, relative to the base path."""
    marker_kind: MarkerKind
    service: ServiceAddress | None
    """None where tasks put direct markers."""
    settings: TaskSettings
    max_file_bytes: int
    """Size at which a file is finished; see ``SizingSettings``."""
    partition: StaticPartition | None = None
    """Values of the first partition columns for all rows; filled in where batches lack them."""
    guard: PartitionGuard | None = None
    """Partitions that rows may be in; None: all."""
    table: str = ""
    """The table's id; empty in a table of format 1, and for a ticket without a job."""
    base_hash: str = ""
    """Hash of the log at ``base``; empty for a ticket without a job."""
    views: ViewSettings = field(default_factory=ViewSettings)
    is_committed: bool = False
    """The write was committed before, under its txn: tasks read and write nothing, and their reports are empty."""

    @property
    def row_group_bytes(self) -> int:
        """Arrow bytes of a row group that is not encoded early."""
        return min(self.settings.row_group_bytes, self.max_file_bytes)
