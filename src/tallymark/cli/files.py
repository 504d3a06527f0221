"""``tallymark files --json``: how large a table's files are."""

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from tallymark.engine.inspection.file_sizes import FileSizes
    from tallymark.engine.table import Table

PARTITIONS_SHOWN = 10
"""Partitions that are named: those with the most small files."""


class BucketFields(TypedDict):
    least: int
    below: int
    """Sizes of its files: at least ``least``, less than ``below``."""
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
    """The part of the table that was asked for; empty for all of it."""
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
    """Of the files that were written once more to come to these."""
    rewritten_per_byte: float
    buckets: list[BucketFields]
    """By size; each holds sizes twice as large as the one before."""
    partitions: int
    """That hold files."""
    most_small: list[PartitionFields]
    """The partitions with the most small files, at most ten; those without any are left out."""


async def files(table: "Table", *, partition: str, small_below: int | None) -> FilesDocument:
    from tallymark.engine.inspection.file_sizes import SMALL_BYTES

    found = await table.files(partition, small_below=SMALL_BYTES if small_below is None else small_below)
    return _document(table.url, partition.strip("/"), found)


def _document(url: str, partition: str, found: "FileSizes") -> FilesDocument:
    return {
        "url": url,
        "partition": partition,
        "position": found.position,
        "files": found.files,
        "rows": found.rows,
        "bytes": found.bytes,
        "p50": found.p50,
        "p95": found.p95,
        "largest": found.largest,
        "small_below": found.small_below,
        "small_files": found.small_files,
        "small_bytes": found.small_bytes,
        "small_file_share": found.small_file_share,
        "small_byte_share": found.small_byte_share,
        "fewest": found.fewest,
        "rewritten_bytes": found.rewritten_bytes,
        "rewritten_per_byte": found.rewritten_per_byte,
        "buckets": [
            {"least": each.least, "below": each.below, "files": each.files, "bytes": each.bytes}
            for each in found.buckets
        ],
        "partitions": len(found.partitions),
        "most_small": [
            {
                "partition": each.partition,
                "files": each.files,
                "bytes": each.bytes,
                "small_files": each.small_files,
                "small_bytes": each.small_bytes,
            }
            for each in found.partitions[:PARTITIONS_SHOWN]
            if each.small_files
        ],
    }
