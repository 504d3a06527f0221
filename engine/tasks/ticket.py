"""Ticket of a job: the value that travels to its tasks."""

from dataclasses import dataclass, field

import pyarrow as pa

from tallymark.backends.options import StorageOptions
from tallymark.engine.partitions.guard import PartitionGuard
from tallymark.engine.partitions.static import StaticPartition
from tallymark.engine.rpc.handshake import ServiceAddress
from tallymark.engine.settings import MarkerKind, TaskSettings, ViewSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTicket:
    """All that a task needs to write files of one job, in any process. Picklable; holds no credentials of storage."""

    url: str
    """The table's base path, as ``open_backend`` takes it."""
    options: StorageOptions
    """What the URL does not say of storage."""
    instant: str
    base: int
    """The position of the commit log that the job had read when it began; what its tasks look up is as of there."""
    schema: pa.Schema
    """What every batch is cast to."""
    partition_by: tuple[str, ...]
    staging: str
    """The instant's staging directory, relative to the base path."""
    marker_kind: MarkerKind
    service: ServiceAddress | None
    """None where tasks put their own, direct markers."""
    settings: TaskSettings
    max_file_bytes: int
    """A file is finished when it has grown to this; see ``SizingSettings``."""
    partition: StaticPartition | None = None
    """The values that all rows have in the first partition columns; filled in where batches lack those."""
    guard: PartitionGuard | None = None
    """What rows may touch, where that is not everything."""
    base_hash: str = ""
    """Which log that position is of; empty for a ticket of no job."""
    views: ViewSettings = field(default_factory=ViewSettings)
    is_committed: bool = False
    """The write was committed before, under its txn: tasks read and write nothing, and their reports are empty."""

    @property
    def row_group_bytes(self) -> int:
        """Arrow bytes of a row group that is not encoded early."""
        return min(self.settings.row_group_bytes, self.max_file_bytes)
