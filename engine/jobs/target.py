"""Target of a request on one table: the partitions its rows go to, and the scope it replaces. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.jobs.request import WriteRequest
from tallymark.engine.partitions.guard import PartitionGuard
from tallymark.engine.partitions.static import StaticPartition
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.timeline.scope import Scope
from tallymark.engine.upsert.predicate import Predicate
from tallymark.engine.upsert.where import parse


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteTarget:
    """Made by ``of``."""

    partition: StaticPartition | None
    """Partition values of all rows; None: each row's own values decide."""
    guard: PartitionGuard | None
    """Partitions that may be touched; None: all."""
    request: WriteRequest
    static_scope: Scope | None
    """Scope of an overwrite, independent of its rows; None for an append, and where the rows decide."""
    predicate: Predicate | None
    """The rows to delete; None where their keys are given, and in other modes."""

    @property
    def is_overwrite(self) -> bool:
        return self.request.mode == "overwrite"

    @classmethod
    def of(cls, request: WriteRequest, properties: TableProperties) -> "WriteTarget":
        """Return the target. Raises InvalidRequest where the request does not fit the table, or its guard refuses it
        already.
        """
        partition = None
        if request.partition is not None:
            partition = StaticPartition.of(
                request.partition,
                keyword="partition",
                schema=properties.schema,
                partition_by=properties.partition_by,
            )
        guard = _guard(request, properties)
        scope = _static_scope(request, properties, partition)
        if guard is not None:
            _check_allowed(guard, partition, scope)
        predicate = None if request.where is None else parse(request.where, properties.schema)
        return cls(partition=partition, guard=guard, request=request, static_scope=scope, predicate=predicate)

    def scope(self, added: Iterable[DataFile]) -> Scope | None:
        """Return what the write replaces if it adds these files; None for an append, which replaces nothing."""
        if self.is_overwrite and self.static_scope is None:
            return Scope(partitions=frozenset(file.partition for file in added))
        return self.static_scope

    def check(self, added: Iterable[DataFile]) -> None:
        """Check that the files are in partitions that the write may touch. The tasks have checked each row; this checks
        again.

        Raises:
            InvalidRequest: names the first file that is not.
        """
        for file in added:
            if self.partition is not None and not self.partition.contains(file.partition):
                raise InvalidRequest(
                    f"file {file.path} does not lie in partition={self.partition}, for which this write is alone; "
                    "commit the reports of tasks that have written with this job's ticket"
                )
            if self.guard is not None:
                self.guard.check(file.partition)


def _static_scope(
    request: WriteRequest, properties: TableProperties, partition: StaticPartition | None
) -> Scope | None:
    """Return the scope of an overwrite; None for another mode, and where the rows decide: as in Spark, that is only
    where a partition column is left open.
    """
    named = len(partition.columns) if partition else 0
    is_leaf = named == len(properties.partition_by)
    if request.mode != "overwrite" or (request.partition_overwrite == "dynamic" and not is_leaf):
        return None
    if partition is None:
        return Scope(is_all=True)
    paths = frozenset({partition.path})
    return Scope(partitions=paths) if is_leaf else Scope(prefixes=paths)


def _guard(request: WriteRequest, properties: TableProperties) -> PartitionGuard | None:
    if request.only_partitions is None:
        return None
    return PartitionGuard(
        tuple(
            StaticPartition.of(
                part, keyword="only_partitions", schema=properties.schema, partition_by=properties.partition_by
            )
            for part in request.allowed
        )
    )


def _check_allowed(guard: PartitionGuard, partition: StaticPartition | None, scope: Scope | None) -> None:
    if scope is not None and (partition is None or not guard.contains(partition.path)):
        what = "the whole table" if partition is None else f"all of partition={partition}"
        raise InvalidRequest(
            f"this overwrite replaces {what}, and {guard} allows less; name a partition that it allows, "
            "say partition_overwrite='dynamic' to replace only partitions that the input has rows for, or allow more"
        )
    if partition is not None and not guard.touches(partition):
        raise InvalidRequest(
            f"this write is for partition={partition}, and {guard} allows nothing there; name a partition "
            "that it allows, or allow this one, too"
        )
