"""The rows that a write would bring, by partition: counted, or merely named."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.files.partition_keys import partition_paths
from tallymark.engine.files.partition_prefix import partition_prefix
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.writes.target import WriteTarget


@dataclass(frozen=True, slots=True)
class CountedRows:
    """How many rows each task has for each combination of values of the partition columns."""

    keys: pa.RecordBatch
    """The partition columns as the input has them; a row for each task and combination that it has rows for."""
    rows: Sequence[int]
    """Their count, for each row of ``keys``."""


Incoming = CountedRows | Sequence[str]
"""What is known of the input: its rows, counted, or the paths of the partitions that it has rows for."""


@dataclass(frozen=True, slots=True)
class IncomingGroup:
    """What one task has for one partition."""

    partition: str
    rows: int | None
    """None of a partition that was merely named."""


def incoming_groups(incoming: Incoming, target: WriteTarget, properties: TableProperties) -> list[IncomingGroup]:
    """Where the rows would go, by the code by which tasks place them.

    Raises:
        InvalidRequest: a row does not lie where this write may put it, or the paths are none of this table's.
    """
    if isinstance(incoming, CountedRows):
        return _counted(incoming, target, properties)
    if isinstance(incoming, str):
        raise InvalidRequest(f"incoming={incoming!r} is one string; give a list of partition paths: [{incoming!r}]")
    paths = dict.fromkeys(_leaf(path, properties.partition_by) for path in incoming)
    for path in paths:
        _check_place(path, target)
    return [IncomingGroup(path, None) for path in paths]


def _counted(incoming: CountedRows, target: WriteTarget, properties: TableProperties) -> list[IncomingGroup]:
    paths = partition_paths(
        incoming.keys,
        len(incoming.rows),
        schema=properties.schema,
        partition_by=properties.partition_by,
        partition=target.partition,
        guard=target.guard,
    )
    return [IncomingGroup(path, rows) for path, rows in zip(paths, incoming.rows, strict=True)]


def _leaf(path: str, partition_by: Sequence[str]) -> str:
    prefix = partition_prefix(path, partition_by)
    depth = prefix.count("/") + 1 if prefix else 0
    if depth != len(partition_by):
        raise InvalidRequest(
            f"partition {path!r} of the input names {depth} of the columns {list(partition_by)}; name the partitions "
            "that hold its rows, in full"
        )
    return prefix


def _check_place(path: str, target: WriteTarget) -> None:
    if target.partition is not None and not target.partition.holds(path):
        raise InvalidRequest(
            f"partition {path!r} of the input does not lie in partition={target.partition}, for which this write is "
            "alone; leave it out, or plan another write for it"
        )
    if target.guard is not None:
        target.guard.check(path)
