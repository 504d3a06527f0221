"""Document of ``tallymark explain``: the fate of one file, and its cause."""

from typing import TYPE_CHECKING, Literal, TypedDict

from tallymark.engine.documents.document import document_of

if TYPE_CHECKING:
    from tallymark.engine.table import Table


class ExplainDocument(TypedDict):
    url: str
    path: str
    """Relative to ``url``."""
    fate: Literal[
        "live",
        "missing",
        "retained",
        "replaced",
        "fence",
        "left out",
        "rolled back",
        "uncommitted",
        "marked",
        "bookkeeping",
        "unknown",
    ]
    is_there: bool
    instant: str | None
    """The instant that has written it, or was to."""
    position: int | None
    """Position of the log entry that decided its fate."""
    rows: int | None
    bytes: int | None
    """By the log; null for a file that it does not name."""
    rewritten_bytes: int | None
    """Total size of the files that were rewritten on the way to it; likewise."""
    made_of: list[str]
    """The small file that was filled to make it; several where the log does not show which of them."""
    filled_into: list[str]
    """The file that contains its rows since it was small and was filled; likewise."""
    why: str
    next: str
    command: str | None
    """The command that does that now; null where nothing is to be done."""
    until: str | None
    """ISO 8601: time until which it remains at least, by the store's clock."""


async def explain_document(table: "Table", file: str) -> ExplainDocument:
    return document_of(ExplainDocument, await table.explain(file), url=table.url)
