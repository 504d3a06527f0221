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
    ended: list[EndedFields]


async def end_instants(table: "Table", instant: str | None) -> RollbackDocument:
    return document_of(RollbackDocument, table, ended=await table.rollback(instant))
