"""Document of ``tallymark rollback``: the end of instants whose writers are dead."""

from typing import TYPE_CHECKING, Literal, TypedDict

from tallymark.engine.documents.document import document_of

if TYPE_CHECKING:
    from tallymark.engine.table import Table


class EndedFields(TypedDict):
    instant: str
    outcome: Literal["rolled back", "was committed", "was cleaned"]
    marked: int
    """Files that it had marked, and that do not exist any more."""
    fences: int
    """Of these, names that an empty file occupies for some time."""


class RollbackDocument(TypedDict):
    url: str
    dry_run: bool
    """True if nothing was changed."""
    ended: list[EndedFields]


async def end_instants(table: "Table", instant: str | None = None, *, dry_run: bool = False) -> RollbackDocument:
    ended = await table.rollback(instant, dry_run=dry_run)
    return document_of(RollbackDocument, table, dry_run=dry_run, ended=ended)
