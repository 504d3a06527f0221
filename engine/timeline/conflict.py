"""Which writes exclude each other. Pure: it compares an entry that wants to commit with those that came before it."""

from collections.abc import Iterable, Sequence

from tallymark.engine.errors import ConflictError
from tallymark.engine.timeline.entry import LogEntry, Scope


def check_conflicts(mine: LogEntry, since_base: Iterable[tuple[int, LogEntry]]) -> None:
    """Return if the entry may follow all entries since its base. Appends never conflict.

    Two writes conflict if both remove one file, or if both overwrite a common part of the table, an empty one too.

    Raises:
        ConflictError: names the partition and the instant that came first.
    """
    removed = {file.path: file.partition for file in mine.removed}
    for position, theirs in since_base:
        if theirs.kind != "commit":
            continue
        partition = next((removed[file.path] for file in theirs.removed if file.path in removed), None)
        if partition is not None:
            raise _conflict(mine, theirs, position, partition)
        if mine.scope is not None and theirs.scope is not None and (shared := _shared(mine.scope, theirs.scope)):
            raise _conflict(mine, theirs, position, shared[0])


def _shared(mine: Scope, theirs: Scope) -> Sequence[str | None]:
    """The first common part: a partition path, or None for all of the table; nothing if there is none."""
    if mine.is_all and theirs.is_all:
        return [None]
    if mine.is_all:
        return sorted(theirs.partitions)[:1]
    if theirs.is_all:
        return sorted(mine.partitions)[:1]
    return sorted(mine.partitions & theirs.partitions)[:1]


def _conflict(mine: LogEntry, theirs: LogEntry, position: int, partition: str | None) -> ConflictError:
    part = f"partition {partition!r}" if partition else "the whole table"
    return ConflictError(
        f"instant {mine.instant} wants to overwrite {part}, which instant {theirs.instant} has overwritten meanwhile "
        f"(position {position}, this write had read position {mine.base}); nothing of this write is left: read the "
        "table again and write again",
        partition=partition or None,
        winner=theirs.instant,
    )
