"""Document of one table of a fleet: its size, its age, and what an operator should do about it."""

import shlex
from typing import TYPE_CHECKING, Literal, TypedDict, cast, get_type_hints

from tallymark.engine.documents.document import ErrorFields, document_of, failure
from tallymark.engine.jobs.result import shown_bytes

if TYPE_CHECKING:
    from tallymark.backends.errors import TallymarkError
    from tallymark.engine.inspection.status import TableStatus

SMALL_RATIO = 2
"""Files that a table has for each one that would contain the same bytes, from which on that is a finding."""

SMALL_COUNT = 10
"""Files from which on that is a finding: a table of three files is not slow to read."""


class FindingFields(TypedDict):
    kind: Literal["unreadable", "dead writer", "small files", "retained files"]
    text: str
    command: str
    """The command that cures it, or shows more."""


class SummaryDocument(TypedDict):
    id: str
    """Hash of the URL: the table's name in the paths of the REST interface."""
    url: str
    name: str | None
    """Null where the table cannot be read; so are all of the following, but for ``findings`` and ``error``."""
    position: int | None
    newest_entry: str | None
    """ISO 8601: when the newest entry of the log was put, by its writer's clock; null before the first, too."""
    files: int | None
    rows: int | None
    bytes: int | None
    partitions: int | None
    small_files: int | None
    """Files below 100 MiB."""
    small_file_share: float | None
    retained_files: int | None
    """Replaced files that are still retained."""
    retained_bytes: int | None
    open_instants: int | None
    dead_writers: int | None
    """Of the open instants, those whose writer is dead."""
    findings: list[FindingFields]
    error: ErrorFields | None


def summary_of(id_: str, url: str, found: "TableStatus") -> SummaryDocument:
    retained = sum(file.bytes for file in found.retained)
    return document_of(
        SummaryDocument,
        found.sizes,
        id=id_,
        url=url,
        name=found.name,
        newest_entry=found.newest_entry,
        partitions=len(found.sizes.partitions),
        retained_files=len(found.retained),
        retained_bytes=retained,
        open_instants=len(found.open_instants),
        dead_writers=sum(each.writer == "dead" for each in found.open_instants),
        findings=findings_of(url, found),
        error=None,
    )


def summary_of_unreadable(id_: str, url: str, error: "TallymarkError") -> SummaryDocument:
    finding: FindingFields = {
        "kind": "unreadable",
        "text": str(error),
        "command": f"tallymark status {shlex.quote(url)}",
    }
    known = {"id": id_, "url": url, "findings": [finding], "error": failure(error)["error"]}
    return cast("SummaryDocument", {name: known.get(name) for name in get_type_hints(SummaryDocument)})


def findings_of(url: str, found: "TableStatus") -> list[FindingFields]:
    """Return what an operator should do about a table, the most urgent first."""
    place, sizes = shlex.quote(url), found.sizes
    findings: list[FindingFields] = [
        {
            "kind": "dead writer",
            "text": f"The writer of instant {each.reservation.instant}, {each.reservation.writer.host} process "
            f"{each.reservation.writer.pid}, is dead; the next write or rollback ends the instant.",
            "command": f"tallymark rollback {place}",
        }
        for each in found.open_instants
        if each.writer == "dead"
    ]
    if sizes.files >= SMALL_COUNT and sizes.files >= SMALL_RATIO * sizes.fewest:
        text = (
            f"{sizes.fewest:,} files would contain the bytes of {sizes.files:,}; writes with SizingSettings fill them."
        )
        findings.append({"kind": "small files", "text": text, "command": f"tallymark files {place}"})
    retained = sum(file.bytes for file in found.retained)
    if retained > sizes.bytes:
        text = f"Replaced files have {shown_bytes(retained)}, more than the table's {shown_bytes(sizes.bytes)}."
        findings.append({"kind": "retained files", "text": text, "command": f"tallymark clean {place}"})
    return findings
