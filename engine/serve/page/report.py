"""The page of a table as one file that needs no service: for tickets and mails."""

from typing import TYPE_CHECKING

from tallymark.engine.clock import Clock, SystemClock
from tallymark.engine.documents.document import document_of
from tallymark.engine.documents.file_list import PartitionListDocument
from tallymark.engine.documents.files import PartitionFields, sizes_document
from tallymark.engine.documents.jobs import job_fields
from tallymark.engine.documents.status import status_document
from tallymark.engine.documents.summary import summary_of
from tallymark.engine.documents.timeline import read_timeline
from tallymark.engine.serve.page.pages import Pages

if TYPE_CHECKING:
    from tallymark.engine.table import Table

ENTRIES = 50
"""Entries of the log to show, the newest."""

PARTITIONS = 100
"""Partitions to show, those with the most small files."""


async def render_report(table: "Table", *, clock: Clock | None = None) -> str:
    """Return the page as HTML. Reads what ``status`` and ``timeline`` read, and the markers of open instants.

    Its figures are those of one position. Entries that are put later are left out.
    """
    found = await table.status()
    timeline = await read_timeline(table, last=ENTRIES)
    jobs = await (await table.watch()).scan()
    now = (clock or SystemClock()).now()
    position = found.sizes.position
    partitions: PartitionListDocument = {
        "url": table.url,
        "position": position,
        "partitions": [document_of(PartitionFields, each) for each in found.sizes.partitions[:PARTITIONS]],
        "next": None,
    }
    return Pages().table_report(
        status=status_document(table.url, found),
        summary=summary_of("", table.url, found),
        timeline={**timeline, "entries": [each for each in timeline["entries"] if each["position"] <= position]},
        sizes=sizes_document(table.url, found.sizes),
        partitions=partitions,
        jobs={"url": table.url, "at": now.isoformat(), "jobs": [job_fields(each, None) for each in jobs]},
        now=now,
    )
