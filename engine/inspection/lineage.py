"""Of which small file a file was made, and into which one a small file's rows went: as the entry of the fill tells.

It names the files, and what had been written once more to come to each: a file that begins with the rows of a small one
has the cost of that one, and its bytes on top. Where small files of one partition have cost the same, each may be it.
"""

from tallymark.engine.jobs.result import shown_bytes
from tallymark.engine.timeline.entry import DataFile, LogEntry


def made_of(file: DataFile, entry: LogEntry) -> tuple[DataFile, ...]:
    """The small files that this one, which the entry added, may have been made of; none for one of new rows alone."""
    return tuple(old for old in entry.filled if _has_filled(file, old))


def filled_into(old: DataFile, entry: LogEntry) -> tuple[DataFile, ...]:
    """The files that may begin with the rows of this one; none where the entry has replaced it without keeping them."""
    return tuple(file for file in entry.added if old in entry.filled and _has_filled(file, old))


def shown_origin(file: DataFile, entry: LogEntry) -> str:
    """A sentence; empty where the file was not made by filling."""
    sources = made_of(file, entry)
    if not sources:
        return ""
    small = " or ".join(f"{old.path} ({old.rows:,} rows, {shown_bytes(old.bytes)})" for old in sources)
    cost = f"{shown_bytes(file.rewritten_bytes)} were written once more to come to it"
    per_byte = f"{file.rewritten_bytes / max(1, file.bytes):,.2f} for each byte of it"
    return f" It was made by filling {small}; all in all {cost}, {per_byte}."


def shown_end(old: DataFile, position: int, entry: LogEntry) -> str:
    """How it was replaced."""
    found = filled_into(old, entry)
    if not found:
        return f"replaced by instant {entry.instant} at position {position}"
    into = " or ".join(file.path for file in found)
    return f"filled by instant {entry.instant} at position {position}: its rows went into {into}"


def _has_filled(file: DataFile, old: DataFile) -> bool:
    return file.partition == old.partition and file.rewritten_bytes == old.rewritten_bytes + old.bytes
