"""Document of ``tallymark plan``: what a write would do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict, cast

if TYPE_CHECKING:
    from tallymark.engine.jobs.request import Mode, PartitionOverwrite
    from tallymark.engine.planning.write_plan import WritePlan
    from tallymark.engine.settings import SizingSettings
    from tallymark.engine.sizing.profile import IncomingRows
    from tallymark.engine.table import Table


class PlanScopeFields(TypedDict):
    all: bool
    partitions: list[str]
    prefixes: list[str]


class PlannedFields(TypedDict):
    partition: str
    change: Literal["new", "added to", "replaced", "emptied"]
    is_new: bool
    files: int | None
    """Files to add; null where unknown."""
    rows: int | None
    removed_files: int
    removed_rows: int
    removed_bytes: int
    planned: "list[PlannedFileFields] | None"
    """The files to add; null where no sizes are planned."""
    rewritten_bytes: int


class SmallFileFields(TypedDict):
    path: str
    rows: int
    bytes: int


class PlannedFileFields(TypedDict):
    rows: int
    """Rows to add to it."""
    bytes: int
    """Its expected size."""
    fill: SmallFileFields | None
    """The small file whose rows it takes over, with its present size."""


class SizingFields(TypedDict):
    files: int
    filled_files: int
    bytes: int
    inserted_bytes: int
    rewritten_bytes: int
    rewritten_per_byte: float
    """Bytes rewritten per inserted byte."""


class PlanDocument(TypedDict):
    url: str
    mode: Literal["append", "overwrite"]
    position: int
    partition_by: list[str]
    is_created: bool
    committed_at: int | None
    """The position at which the same txn was committed; null where it was not."""
    scope: PlanScopeFields | None
    partitions: list[PlannedFields]
    removed: list[str]
    """Paths of the files to remove."""
    removed_files: int
    removed_rows: int
    removed_bytes: int
    retain_hours: float | None
    rows: int | None
    files: int | None
    bytes: int | None
    sizing: SizingFields | None
    """Null where sizing is off, or the rows were not counted."""
    estimate: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """Options of a plan; partitions as paths."""

    mode: "Mode"
    partition: Sequence[str]
    partition_overwrite: "PartitionOverwrite"
    only_partitions: Sequence[str]
    base: int | None
    txn: str | None
    sizing: "SizingSettings | None"
    incoming: "Sequence[str | IncomingRows] | None"


async def read_plan(table: "Table", *, request: PlanRequest) -> "WritePlan":
    from tallymark.engine.partitions.path import partition_values

    snapshot = await table.snapshot()

    def values(path: str) -> dict[str, Any]:
        return dict(partition_values(path, snapshot.schema, snapshot.partition_by))

    return await table.plan(
        mode=request.mode,
        partition=values("/".join(request.partition)) if request.partition else None,
        partition_overwrite=request.partition_overwrite,
        only_partitions=[values(path) for path in request.only_partitions] or None,
        base=request.base,
        txn=request.txn,
        sizing=request.sizing,
        incoming=request.incoming,
    )


def plan_document(found: "WritePlan") -> PlanDocument:
    return cast("PlanDocument", found.fields())
