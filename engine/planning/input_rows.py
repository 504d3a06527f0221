"""Input rows of a planned write, by partition: counted, or only named."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.jobs.target import WriteTarget
from tallymark.engine.partitions.path import partition_prefix
from tallymark.engine.sizing.profile import IncomingRows, WorkloadProfile, check_has_no_updates
from tallymark.engine.tasks.partition_keys import partition_paths
from tallymark.engine.timeline.properties import TableProperties


@dataclass(frozen=True, slots=True)
class CountedRows:
    """Row counts per task and combination of partition values."""

    keys: pa.RecordBatch
    """The partition columns of the input, one row per task and combination."""
    rows: Sequence[int]
    """The count for each row of ``keys``."""
    plain_bytes: Sequence[int] | None = None
    """The plain size for each row of ``keys`` (``arrow.plain_size``); None if it was not measured."""


Incoming = CountedRows | WorkloadProfile | Sequence[str | IncomingRows]
"""A description of the input: its rows counted by task or by partition, or the paths of its partitions."""


@dataclass(frozen=True, slots=True)
class IncomingGroup:
    """The rows of one task, or of all tasks, for one partition."""

    partition: str
    rows: int | None
    """None for a partition that was only named."""
    plain_bytes: int | None = None
    """None if it was not measured."""


def incoming_groups(incoming: Incoming, target: WriteTarget, properties: TableProperties) -> list[IncomingGroup]:
    """Return the rows by partition, assigned by the code that tasks use.

    Raises:
        InvalidRequest: a row is outside of what this write may touch, or a path is not a partition of this table.
    """
    if isinstance(incoming, str):
        raise InvalidRequest(f"incoming={incoming!r} is one string; give a list of partition paths: [{incoming!r}]")
    if isinstance(incoming, CountedRows):
        groups = _counted(incoming, target, properties)
    else:
        groups = _by_partition(incoming, target, properties)
    return [group for group in groups if group.rows != 0]


def _by_partition(
    incoming: WorkloadProfile | Sequence[str | IncomingRows], target: WriteTarget, properties: TableProperties
) -> list[IncomingGroup]:
    if isinstance(incoming, WorkloadProfile):
        if not target.request.is_keyed:
            check_has_no_updates(incoming)
        incoming = incoming.incoming
    groups = [_group(each, properties.partition_by) for each in incoming]
    for group in groups:
        _check_placement(group.partition, target)
    named = dict.fromkeys(group for group in groups if group.rows is None)
    return [*named, *(group for group in groups if group.rows is not None)]


def _counted(incoming: CountedRows, target: WriteTarget, properties: TableProperties) -> list[IncomingGroup]:
    paths = partition_paths(
        incoming.keys,
        len(incoming.rows),
        schema=properties.schema,
        partition_by=properties.partition_by,
        partition=target.partition,
        guard=target.guard,
    )
    sizes = incoming.plain_bytes if incoming.plain_bytes is not None else [None] * len(paths)
    return [IncomingGroup(*group) for group in zip(paths, incoming.rows, sizes, strict=True)]


def _group(named: str | IncomingRows, partition_by: Sequence[str]) -> IncomingGroup:
    if isinstance(named, str):
        return IncomingGroup(_leaf(named, partition_by), None)
    return IncomingGroup(_leaf(named.partition, partition_by), named.rows, named.plain_bytes)


def _leaf(path: str, partition_by: Sequence[str]) -> str:
    prefix = partition_prefix(path, partition_by)
    depth = prefix.count("/") + 1 if prefix else 0
    if depth != len(partition_by):
        raise InvalidRequest(
            f"partition {path!r} of the input names {depth} of the columns {list(partition_by)}; give the full path of "
            "each partition"
        )
    return prefix


def _check_placement(path: str, target: WriteTarget) -> None:
    if target.partition is not None and not target.partition.contains(path):
        raise InvalidRequest(
            f"partition {path!r} of the input is outside of partition={target.partition}, the only part that this "
            "write may touch; leave it out, or plan another write for it"
        )
    if target.guard is not None:
        target.guard.check(path)
