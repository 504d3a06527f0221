"""Prefixes of partition paths, as users type them: ``year=2013`` is that partition and everything below it."""

from collections.abc import Sequence

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.partitions.path import escaped


def partition_prefix(text: str, columns: Sequence[str]) -> str:
    """Return the prefix without slashes at its ends; ``""`` is the whole table.

    Raises:
        InvalidRequest: no partition of a table with these partition columns can be below it.
    """
    prefix = text.strip("/")
    segments = prefix.split("/") if prefix else []
    given = [segment.partition("=")[0] for segment in segments if "=" in segment]
    if given != [escaped(column) for column in columns[: len(segments)]]:
        shape = "/".join(f"{escaped(column)}=..." for column in columns)
        how = f"its partitions are {shape}; give one of these, or the beginning of some" if columns else "leave it out"
        raise InvalidRequest(f"partition {text!r}: the table is partitioned by {list(columns) or 'nothing'}; {how}")
    return prefix
