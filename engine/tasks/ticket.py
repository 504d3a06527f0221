"""Ticket of a job: the value that its tasks get."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tallymark.backends.options import StorageOptions
from tallymark.engine.partitions.guard import PartitionGuard
from tallymark.engine.partitions.static import StaticPartition
from tallymark.engine.rpc.handshake import ServiceAddress
from tallymark.engine.settings import MarkerKind, TaskSettings, ViewSettings
from tallymark.engine.tasks.departure import Departure
from tallymark.engine.tasks.in_flight import Readers, pack, plain, record, unpack
from tallymark.engine.timeline.table_key import TableKey

FORMAT = 1
_MAGIC = b"TMTK"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTicket:
    """Everything that a task needs to write files of one job, in any process. Contains no credentials of storage.

    ``encode`` and ``decode`` carry it; pickles contain the same bytes. They include the key to the job's service.
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
    key: TableKey | None = None
    """The table's record key."""
    where: str | None = None
    """The predicate that selects the rows to delete; None where keys do, and in other modes."""
    is_committed: bool = False
    """The write was committed before, under its txn: tasks read and write nothing, and their reports are empty."""
    departure: Departure = field(default_factory=Departure, compare=False, repr=False)
    """Of this process: encoded tickets lack it."""

    @property
    def row_group_bytes(self) -> int:
        """Arrow bytes of a row group that is not encoded early."""
        return min(self.settings.row_group_bytes, self.max_file_bytes)

    @property
    def changed_by(self) -> TableKey | None:
        """The key by which changes find their rows; None where positions alone do."""
        return self.key if self.where is None else None

    @property
    def range_field(self) -> "pa.Field[Any] | None":
        """The field whose range is recorded of each file; None for a table without a key."""
        name = None if self.key is None else self.key.range_column(self.partition_by)
        return None if name is None else self.schema.field(name)

    def encode(self) -> bytes:
        """Return the ticket for another process. Raises Sealed if its job is being committed, or over, and it was not
        encoded before.
        """
        self.departure.leave()
        return pack(self, magic=_MAGIC, format_=FORMAT, default=_plain)

    @classmethod
    def decode(cls, data: bytes) -> "WriteTicket":
        """Return the ticket. Raises InvalidRequest for one that was damaged on its way, or is of another format."""
        return unpack(cls, data, magic=_MAGIC, format_=FORMAT, readers=_READERS)

    def __reduce__(self) -> tuple[Callable[[bytes], "WriteTicket"], tuple[bytes]]:
        return WriteTicket.decode, (self.encode(),)


def _plain(value: Any) -> Any:
    """Return a schema in Arrow's IPC form, a date or decimal as a map of its type to its text, and settings by name."""
    if isinstance(value, pa.Schema):
        return value.serialize().to_pybytes()
    if isinstance(value, date):
        return {"date": value.isoformat()}
    return {"decimal": str(value)} if isinstance(value, Decimal) else plain(value)


def _value(found: Any) -> Any:
    match found:
        case {"date": text}:
            return date.fromisoformat(text)
        case {"decimal": text}:
            return Decimal(text)
    return found


def _partition(found: Any) -> StaticPartition:
    return StaticPartition(tuple(found["columns"]), tuple(map(_value, found["values"])))


_READERS: Readers = {
    "options": lambda found: record(StorageOptions, found, {"hadoop": lambda pairs: tuple(map(tuple, pairs))}),
    "schema": lambda data: pa.ipc.read_schema(pa.py_buffer(data)),
    "partition_by": tuple,
    "service": lambda found: found and record(ServiceAddress, found),
    "settings": lambda found: record(TaskSettings, found),
    "partition": lambda found: found and _partition(found),
    "guard": lambda found: found and PartitionGuard(tuple(map(_partition, found["parts"]))),
    "views": lambda found: record(ViewSettings, found),
    "key": lambda found: found and record(TableKey, found, {"record_key": tuple, "order_by": tuple}),
}
