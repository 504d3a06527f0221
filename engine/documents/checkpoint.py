"""Document of ``tallymark checkpoint``: a checkpoint of the newest position."""

from typing import TYPE_CHECKING, TypedDict

from tallymark.engine.documents.document import document_of

if TYPE_CHECKING:
    from tallymark.engine.table import Table


class CheckpointDocument(TypedDict):
    url: str
    position: int
    """Position of the log from which readers of the checkpoint start."""
    files: int
    partitions: int
    """Partitions that contain files."""
    parts: int
    parts_written: int
    """Of the parts, those that were written; the others are those of the checkpoint before. 0 where one of this
    position existed.
    """
    bytes_written: int
    seconds: float


async def put_checkpoint(table: "Table") -> CheckpointDocument:
    return document_of(CheckpointDocument, await table.checkpoint(), url=table.url)
