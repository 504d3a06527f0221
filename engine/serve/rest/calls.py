"""One request of an operation, as its handler sees it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.serve.rest.access import Access
from tallymark.engine.serve.rest.lake import Lake
from tallymark.engine.serve.rest.lake_table import LakeTable
from tallymark.engine.serve.tokens import Role

Limit = Annotated[int, Meta(ge=1, le=1000, description="Items of one page at most.")]
Position = Annotated[int, Meta(ge=0, le=(1 << 63) - 1, description="A position of the commit log.")]
Cursor = Annotated[str, Meta(max_length=1024, description="`next` of the page before.")]
PartitionPath = Annotated[
    str, Meta(max_length=1024, description="A partition path, such as `year=2013`, or part of one.")
]


class BadRequest(InvalidRequest):
    """The request is not as the OpenAPI document has it."""


class Nothing(Struct, forbid_unknown_fields=True):
    """No parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """``query`` and ``body`` are of the classes that the operation names."""

    lake: Lake
    access: Access
    query: Any
    body: Any
    names: Mapping[str, str]
    """Named parts of the path."""
    opened: LakeTable | None

    @property
    def table(self) -> LakeTable:
        assert self.opened is not None, "the operation is not of a table"
        return self.opened


Handler = Callable[[Call], Awaitable[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """A row of the table from which routes, authorization, the OpenAPI document and the docs are made."""

    method: Literal["GET", "POST"]
    path: str
    summary: str
    role: Role | None
    """What it needs, for the table in its path or any; None: nothing."""
    answer: Any
    """The type of its document."""
    handler: Handler
    query: type[Struct] = Nothing
    body: type[Struct] | None = None
    is_of_position: bool = False
    """Whether the answer follows from the position of the log; otherwise its tag is of its bytes."""
    is_heavy: bool = False
    """Whether it may read much of the log: few of them run at once."""

    @property
    def is_of_table(self) -> bool:
        return "{table}" in self.path
