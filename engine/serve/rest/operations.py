"""Every operation of the REST interface but the actions: a row each, with its handler."""

from functools import partial
from typing import Annotated, Literal, TypedDict

from msgspec import UNSET, Meta, Struct, UnsetType

from tallymark.engine.documents.explain import ExplainDocument, explain_document
from tallymark.engine.documents.file_list import DiffDocument, FileListDocument, PartitionListDocument
from tallymark.engine.documents.files import FilesDocument, file_sizes
from tallymark.engine.documents.jobs import JobsDocument, LossDocument
from tallymark.engine.documents.markers import MarkersDocument
from tallymark.engine.documents.plan import PlanDocument, PlanRequest, plan_document, read_plan
from tallymark.engine.documents.status import StatusDocument, read_status
from tallymark.engine.documents.summary import SummaryDocument
from tallymark.engine.documents.timeline import TimelineDocument
from tallymark.engine.serve.rest.calls import Call, Cursor, Limit, Operation, PartitionPath, Position
from tallymark.engine.serve.tokens import Role
from tallymark.engine.sizing.profile import IncomingRows

Count = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]


class RootProblem(TypedDict):
    root: str
    problem: str


class TablesDocument(TypedDict):
    tables: list[SummaryDocument]
    """Sorted by URL."""
    problems: list[RootProblem]
    """Roots whose tables could not be looked for."""
    next: str | None


class MarkerPageDocument(MarkersDocument):
    next: str | None


class TablesQuery(Struct, forbid_unknown_fields=True):
    after: Cursor = ""
    limit: Limit = 200


class CommitsQuery(Struct, forbid_unknown_fields=True):
    after: Position | UnsetType = UNSET
    """Only entries after it, the first ones; by default the newest."""
    limit: Limit = 100


class SizesQuery(Struct, forbid_unknown_fields=True):
    partition: PartitionPath = ""
    small_bytes: Count | UnsetType = UNSET
    """Files below it are small; by default 100 MiB."""


class FilesQuery(Struct, forbid_unknown_fields=True):
    partition: PartitionPath = ""
    position: Position | UnsetType = UNSET
    after: Cursor = ""
    limit: Limit = 100


class PartitionsQuery(Struct, forbid_unknown_fields=True):
    after: Count = 0
    """`next` of the page before."""
    limit: Limit = 100


class DiffQuery(Struct, forbid_unknown_fields=True):
    start: Position
    end: Position


class MarkersQuery(Struct, forbid_unknown_fields=True):
    after: Cursor = ""
    limit: Limit = 100


class ExplainQuery(Struct, forbid_unknown_fields=True):
    file: Annotated[str, Meta(min_length=1, max_length=1024)]
    """A path below the table, a URL of it, or the bare name of a data file."""


class IncomingPartition(Struct, forbid_unknown_fields=True):
    partition: PartitionPath
    rows: Count | None = None
    bytes: Count | None = None


class PlanBody(Struct, forbid_unknown_fields=True):
    """The write to plan, as of ``tallymark plan``."""

    mode: Literal["append", "overwrite"]
    partition: list[str] = []
    """The part that the write is for, such as ``["year=2013"]``."""
    partition_overwrite: Literal["static", "dynamic"] = "static"
    only_partitions: list[str] = []
    base: Position | None = None
    txn: str | None = None
    incoming: list[IncomingPartition] | None = None
    """The partitions that the input has rows for, with their rows if they are known."""


async def _tables(call: Call) -> TablesDocument:
    found = [each for each in await call.lake.summaries(call.access.may_read) if each["url"] > call.query.after]
    page = found[: call.query.limit]
    problems: list[RootProblem] = [
        {"root": root, "problem": problem}
        for root, problem in sorted(call.lake.problems.items())
        if call.access.may_read(root)
    ]
    return {"tables": page, "problems": problems, "next": page[-1]["url"] if len(found) > len(page) else None}


async def _status(call: Call) -> StatusDocument:
    return await call.table.read(read_status)


async def _commits(call: Call) -> TimelineDocument:
    return await call.table.timeline(after=given(call.query.after), last=call.query.limit)


async def _sizes(call: Call) -> FilesDocument:
    query: SizesQuery = call.query
    return await call.table.read(partial(file_sizes, partition=query.partition, small_below=given(query.small_bytes)))


async def _files(call: Call) -> FileListDocument:
    query: FilesQuery = call.query
    return await call.table.files(
        partition=query.partition, position=given(query.position), after=query.after, limit=query.limit
    )


async def _partitions(call: Call) -> PartitionListDocument:
    return await call.table.partitions(offset=call.query.after, limit=call.query.limit)


async def _diff(call: Call) -> DiffDocument:
    return await call.table.diff(call.query.start, call.query.end)


async def _jobs(call: Call) -> JobsDocument:
    return await call.table.jobs()


async def _markers(call: Call) -> MarkerPageDocument:
    query: MarkersQuery = call.query
    found = await call.table.markers(call.names["instant"], after=query.after, limit=query.limit + 1)
    page = found["markers"][: query.limit]
    return {**found, "markers": page, "next": page[-1]["path"] if len(found["markers"]) > len(page) else None}


async def _loss(call: Call) -> LossDocument:
    return await call.table.loss(call.names["instant"])


async def _explain(call: Call) -> ExplainDocument:
    return await explain_document(call.table.fresh(), call.query.file)


def _incoming(given: IncomingPartition) -> str | IncomingRows:
    return given.partition if given.rows is None else IncomingRows(given.partition, given.rows, given.bytes)


async def _plan(call: Call) -> PlanDocument:
    body: PlanBody = call.body
    incoming = None if body.incoming is None else [_incoming(each) for each in body.incoming]
    request = PlanRequest(
        mode=body.mode,
        partition=body.partition,
        partition_overwrite=body.partition_overwrite,
        only_partitions=body.only_partitions,
        base=body.base,
        txn=body.txn,
        sizing=None,
        incoming=incoming,
    )
    return plan_document(await read_plan(call.table.fresh(), request=request))


def given(value: int | UnsetType) -> int | None:
    return None if isinstance(value, UnsetType) else value


TABLE = "/v1/tables/{table}"

OPERATIONS: tuple[Operation, ...] = (
    Operation(
        method="GET",
        path="/v1/tables",
        summary="The tables that the token covers, with what an operator should do about each.",
        role=Role.READ,
        query=TablesQuery,
        answer=TablesDocument,
        handler=_tables,
    ),
    Operation(
        method="GET",
        path=TABLE,
        summary="Properties, content and open writers of a table, as of `tallymark status`.",
        role=Role.READ,
        answer=StatusDocument,
        handler=_status,
    ),
    Operation(
        method="GET",
        path=f"{TABLE}/commits",
        summary="Entries of the commit log, oldest first, as of `tallymark timeline`.",
        role=Role.READ,
        query=CommitsQuery,
        answer=TimelineDocument,
        handler=_commits,
        is_of_position=True,
    ),
    Operation(
        method="GET",
        path=f"{TABLE}/sizes",
        summary="Sizes of the files, as of `tallymark files`.",
        role=Role.READ,
        query=SizesQuery,
        answer=FilesDocument,
        handler=_sizes,
        is_of_position=True,
    ),
    Operation(
        method="GET",
        path=f"{TABLE}/files",
        summary="Files at a position, by default now.",
        role=Role.READ,
        query=FilesQuery,
        answer=FileListDocument,
        handler=_files,
        is_of_position=True,
    ),
    Operation(
        method="GET",
        path=f"{TABLE}/partitions",
        summary="Partitions with the number and size of their files.",
        role=Role.READ,
        query=PartitionsQuery,
        answer=PartitionListDocument,
        handler=_partitions,
        is_of_position=True,
    ),
    Operation(
        method="GET",
        path=f"{TABLE}/diff",
        summary="Files that were added and removed between two positions.",
        role=Role.READ,
        query=DiffQuery,
        answer=DiffDocument,
        handler=_diff,
        is_heavy=True,
        is_of_position=True,
    ),
    Operation(
        method="GET",
        path=f"{TABLE}/jobs",
        summary="Open instants with the markers of their jobs.",
        role=Role.READ,
        answer=JobsDocument,
        handler=_jobs,
    ),
    Operation(
        method="GET",
        path=f"{TABLE}/jobs/{{instant}}/markers",
        summary="Markers of an open instant, as of `tallymark markers`.",
        role=Role.READ,
        query=MarkersQuery,
        answer=MarkerPageDocument,
        handler=_markers,
    ),
    Operation(
        method="GET",
        path=f"{TABLE}/jobs/{{instant}}/loss",
        summary="What a rollback of an open instant would remove now.",
        role=Role.READ,
        answer=LossDocument,
        handler=_loss,
    ),
    Operation(
        method="GET",
        path=f"{TABLE}/explain",
        summary="Why a file is kept, hidden or due for removal, as of `tallymark explain`.",
        role=Role.READ,
        query=ExplainQuery,
        answer=ExplainDocument,
        handler=_explain,
        is_heavy=True,
    ),
    Operation(
        method="POST",
        path=f"{TABLE}/plan",
        summary="What a write would do, as of `tallymark plan`; nothing is changed.",
        role=Role.READ,
        body=PlanBody,
        answer=PlanDocument,
        handler=_plan,
        is_heavy=True,
    ),
)
