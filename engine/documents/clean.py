"""Document of ``tallymark clean``: deletion of replaced files whose retention is over."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypedDict

from tallymark.engine.documents.document import document_of
from tallymark.engine.documents.rollback import EndedFields

if TYPE_CHECKING:
    from tallymark.engine.table import Table


class ReaderFields(TypedDict):
    position: int
    """Files that were replaced after this position of the log remain for it."""
    host: str
    pid: int


class LookedAtFields(TypedDict):
    entries: int
    partitions: int


class CleanDocument(TypedDict):
    url: str
    dry_run: bool
    """True if nothing was deleted."""
    ended: list[EndedFields]
    files: int
    """Replaced files whose retention was over."""
    bytes: int
    partitions: list[str]
    """Partitions of these files."""
    horizon: int
    """Files that were replaced up to this position are deleted; 0 with ``readers="directory"``, where they are deleted
    at once.
    """
    looked_at: LookedAtFields
    """Parts of the log and the table that were read to find them."""
    held_files: int
    """Replaced files whose retention was over and which remain for these readers."""
    readers: list[ReaderFields]
    fences_swept: int


async def clean_table(
    table: "Table",
    *,
    retain_hours: float | None = None,
    dry_run: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> CleanDocument:
    result = await table.clean(retain_hours=retain_hours, dry_run=dry_run, progress=progress)
    readers = [
        document_of(ReaderFields, reader, host=reader.process.host, pid=reader.process.pid) for reader in result.readers
    ]
    return document_of(CleanDocument, result, url=table.url, dry_run=result.is_dry_run, readers=readers)
