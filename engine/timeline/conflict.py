"""Conflicts between writes: an entry to commit is compared with the entries before it. Pure."""

from collections.abc import Iterable

from tallymark.engine.errors import ConflictError
from tallymark.engine.timeline.entry import LogEntry
from tallymark.engine.timeline.scope import Scope


def check_conflicts(mine: LogEntry, since_base: Iterable[tuple[int, LogEntry]]) -> None:
    """Check that the entry may follow all entries since its base. Appends that fill no file never conflict.

    Two writes conflict if both remove one file, or if both overwrite a common part of the table, even an empty one.

    Raises:
        ConflictError: names the partition and the instant of the entry that was first.
    """
    removed = {file.path: file.partition for file in mine.removed}
    for position, theirs in since_base:
        if theirs.kind != "commit":
            continue
        partition = next((removed[file.path] for file in theirs.removed if file.path in removed), None)
        if partition is not None:
            raise _conflict(mine, theirs, position, Scope(partitions=frozenset({partition})))
        if mine.scope is not None and theirs.scope is not None and (shared := _shared(mine.scope, theirs.scope)):
            raise _conflict(mine, theirs, position, shared)


def _shared(mine: Scope, theirs: Scope) -> Scope:
    """Return the scope that both overwrite, which is falsy where there is none."""
    return mine.common(theirs)


def _part(shared: Scope) -> tuple[str, str | None]:
    """Return the scope's first part in words, and the path that names it; None for all of the table."""
    path = min(shared.partitions | shared.prefixes, default=None)
    if not path:
        return "the whole table", None
    return (f"partition {path!r}" if path in shared.partitions else f"all below {path!r}"), path


def _conflict(mine: LogEntry, theirs: LogEntry, position: int, shared: Scope) -> ConflictError:
    part, path = _part(shared)
    if theirs.scope is not None:
        done = f"which instant {theirs.instant} has overwritten since"
    else:
        done = f"and instant {theirs.instant} has added rows to a file of that since"
    return ConflictError(
        f"instant {mine.instant} wants to overwrite {part}, {done} "
        f"(position {position}, this write had read position {mine.base}); nothing of this write is left: read the "
        "table again and write again",
        partition=path,
        winner=theirs.instant,
    )
