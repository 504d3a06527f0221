"""Documents that list files of a table at a position, page by page, and what changed between two positions."""

from typing import TypedDict

from tallymark.engine.documents.files import PartitionFields


class FileFields(TypedDict):
    path: str
    """Relative to ``url``."""
    rows: int
    bytes: int


class FileListDocument(TypedDict):
    url: str
    position: int
    partition: str
    """The requested part of the table; empty for all of it."""
    files: list[FileFields]
    """Sorted by path."""
    next: str | None
    """Cursor of the next page; null on the last."""


class PartitionListDocument(TypedDict):
    url: str
    position: int
    partitions: list[PartitionFields]
    """Those with the most small files first."""
    next: int | None


class DiffDocument(TypedDict):
    url: str
    start: int
    end: int
    added: list[FileFields]
    """Files that the table has at ``end`` and did not have at ``start``, sorted by path."""
    removed: list[FileFields]
    """Files that it had at ``start`` and does not have at ``end``."""
