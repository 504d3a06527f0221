"""Conflicts between writes: an entry to commit is compared with the entries before it. Pure."""

from collections.abc import Iterable
from dataclasses import replace

from tallymark.engine.errors import ConflictError
from tallymark.engine.timeline.entry import DataFile, LogEntry
from tallymark.engine.timeline.scope import Scope


def check_conflicts(
    mine: LogEntry, since_base: Iterable[tuple[int, LogEntry]], *, read: Iterable[DataFile] = ()
) -> None:
    """Check that the entry may follow all entries since its base. Appends that fill no file never conflict.

    Two writes conflict if both remove one file, or if both overwrite a common part of the table, even an empty one. An
    overwrite of a part to which an upsert has added rows conflicts, too: their keys may be the same. ``read`` are files
    that must not have been removed either, since the write depends on their rows.

    Raises:
        ConflictError: names the partition and the instant of the entry that was first.
    """
    removed = {file.path: file.partition for file in (*mine.removed, *read)}
    if mine.is_plain_append:
        return
    for position, theirs in since_base:
        if theirs.kind != "commit":
            continue
        partition = next((removed[file.path] for file in theirs.removed if file.path in removed), None)
        if partition is not None:
            raise _conflict(mine, theirs, position, Scope(partitions=frozenset({partition})))
        if mine.scope is not None and (shared := _shared(mine.scope, theirs)):
            raise _conflict(mine, theirs, position, shared)


def beyond_compactions(mine: LogEntry, since_base: Iterable[tuple[int, LogEntry]]) -> LogEntry | None:
    """Return the overwrite with the files into which compactions since its base have merged those that it replaces.

    The same rows are replaced. None where there are none, or where their files have rows, too, that the overwrite has
    not read: it conflicts with these.
    """
    if mine.operation != "overwrite":
        return None
    removed = {file.path: file for file in mine.removed}
    for _, theirs in since_base:
        if theirs.kind != "commit" or not theirs.is_compaction:
            continue
        for partition in {file.partition for file in theirs.removed if file.path in removed}:
            merged = [file for file in theirs.removed if file.partition == partition]
            if any(file.path not in removed for file in merged):
                return None
            for file in merged:
                del removed[file.path]
            removed.update((file.path, file) for file in theirs.added if file.partition == partition)
    found = tuple(removed[path] for path in sorted(removed))
    return None if removed.keys() == {file.path for file in mine.removed} else replace(mine, removed=found)


def _shared(mine: Scope, theirs: LogEntry) -> Scope:
    """Return the part of the scope that the other entry has overwritten, or added to by key; falsy where there is
    none.
    """
    if theirs.scope is not None:
        return mine.common(theirs.scope)
    if theirs.operation != "upsert":
        return Scope()
    return Scope(partitions=frozenset(filter(mine.holds, (file.partition for file in theirs.added))))


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
    elif theirs.operation in ("upsert", "delete"):
        done = f"and instant {theirs.instant} has changed rows of that since"
    elif theirs.is_compaction:
        done = f"and instant {theirs.instant} has merged files of that since"
    else:
        done = f"and instant {theirs.instant} has added rows to a file of that since"
    wishes = {"upsert": "change rows of", "delete": "change rows of", "append": "rewrite files of"}
    wish = wishes.get(mine.operation, "overwrite")
    return ConflictError(
        f"instant {mine.instant} wants to {wish} {part}, {done} "
        f"(position {position}, this write had read position {mine.base}); nothing of this write is left: read the "
        "table again and write again",
        partition=path,
        winner=theirs.instant,
    )
