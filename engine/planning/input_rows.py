"""The rows that a write would bring, by partition: counted, or merely named."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.jobs.target import WriteTarget
from tallymark.engine.partitions.prefix import partition_prefix
from tallymark.engine.sizing.profile import IncomingRows, WorkloadProfile, check_has_no_updates
from tallymark.engine.tasks.partition_keys import partition_paths
from tallymark.engine.timeline.properties import TableProperties


@dataclass(frozen=True, slots=True)
class CountedRows:
    """How many rows each task has for each combination of values of the partition columns."""

    keys: pa.RecordBatch
    """The partition columns as the input has them; a row for each task and combination that it has rows for."""
    rows: Sequence[int]
    """Their count, for each row of ``keys``."""
    plain_bytes: Sequence[int] | None = None
    """Their size as ``sizing.plain_bytes`` measures it, for each row of ``keys``; None where nobody has measured."""


Incoming = CountedRows | WorkloadProfile | Sequence[str | IncomingRows]
"""What is known of the input: its rows, counted by task or by partition, or the paths of the partitions that it has
rows for."""


@dataclass(frozen=True, slots=True)
class IncomingGroup:
    """What one task has for one partition, or all of them."""

    partition: str
    rows: int | None
    """None of a partition that was merely named."""
    plain_bytes: int | None = None
    """None where nobody has measured."""


def incoming_groups(incoming: Incoming, target: WriteTarget, properties: TableProperties) -> list[IncomingGroup]:
    """Where the rows would go, by the code by which tasks place them; where none were counted, none go.

    Raises:
        InvalidRequest: a row does not lie where this write may put it, or the paths are none of this table's.
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
            f"partition {path!r} of the input names {depth} of the columns {list(partition_by)}; name the partitions "
            "that hold its rows, in full"
        )
    return prefix


def _check_placement(path: str, target: WriteTarget) -> None:
    if target.partition is not None and not target.partition.contains(path):
        raise InvalidRequest(
            f"partition {path!r} of the input does not lie in partition={target.partition}, for which this write is "
            "alone; leave it out, or plan another write for it"
        )
    if target.guard is not None:
        target.guard.check(path)
