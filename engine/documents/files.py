"""Document of ``tallymark files``: the sizes of the files of a table."""

from typing import TYPE_CHECKING, TypedDict

from tallymark.engine.documents.document import document_of

if TYPE_CHECKING:
    from tallymark.engine.inspection.file_sizes import FileSizes
    from tallymark.engine.table import Table


PARTITIONS_SHOWN = 10
"""Number of partitions to show: those with the most small files."""


class BucketFields(TypedDict):
    least: int
    below: int
    """Its files have at least ``least`` and less than ``below`` bytes."""
    files: int
    bytes: int


class PartitionFields(TypedDict):
    partition: str
    files: int
    bytes: int
    small_files: int
    small_bytes: int


class FilesDocument(TypedDict):
    url: str
    partition: str
    """The requested part of the table; empty for all of it."""
    position: int
    files: int
    rows: int
    bytes: int
    p50: int
    p95: int
    largest: int
    small_below: int
    small_files: int
    small_bytes: int
    small_file_share: float
    small_byte_share: float
    fewest: int
    """Files that the same bytes would fill."""
    rewritten_bytes: int
    """Total size of the files that were rewritten on the way to these."""
    rewritten_per_byte: float
    buckets: list[BucketFields]
    """By size; each covers sizes twice as large as the one before."""
    partitions: int
    """Partitions that contain files."""
    most_small: list[PartitionFields]
    """The partitions with the most small files, at most ten; those without any are left out."""


async def file_sizes(table: "Table", *, partition: str, small_below: int | None) -> FilesDocument:
    from tallymark.engine.inspection.file_sizes import SMALL_BYTES

    found = await table.files(partition, small_below=SMALL_BYTES if small_below is None else small_below)
    return sizes_document(table.url, found, partition=partition)


def sizes_document(url: str, found: "FileSizes", *, partition: str = "") -> FilesDocument:
    return document_of(
        FilesDocument,
        found,
        url=url,
        partition=partition.strip("/"),
        partitions=len(found.partitions),
        most_small=[
            document_of(PartitionFields, each) for each in found.partitions[:PARTITIONS_SHOWN] if each.small_files
        ],
    )
