"""Explanation of one file: its fate, the reason, and what will happen to it, derived from the facts. Pure."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from shlex import quote
from typing import Literal

from tallymark.engine.inspection.status import OpenInstant
from tallymark.engine.jobs.result import shown_bytes
from tallymark.engine.timeline.entry import DataFile, LogEntry

Fate = Literal[
    "live",
    "missing",
    "retained",
    "replaced",
    "fence",
    "left out",
    "rolled back",
    "uncommitted",
    "marked",
    "bookkeeping",
    "unknown",
]
"""- ``live``: committed, and part of the table. ``missing``: the same, but the file does not exist.
- ``retained``: replaced, and kept for readers of older positions. ``replaced``: due for removal, or removed.
- ``fence``: an empty file that occupies the name of a lost task attempt.
- ``left out``: its instant was committed without it. ``rolled back``: with its instant.
- ``uncommitted``: of an open instant. ``marked``: by an open instant, and the file does not exist.
- ``unknown``: not a file of this library.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Facts about one file. ``str`` of it is a paragraph."""

    path: str
    """Path relative to the table."""
    fate: Fate
    is_there: bool
    instant: str | None
    """The instant that has written it, or was to; for a bookkeeping file the one that it belongs to."""
    position: int | None
    """Position of the log entry that decided its fate."""
    why: str
    next: str
    """What will happen to it, and when."""
    command: str | None = None
    """The command that does that now; None where nothing is to be done, or no command of ours would do it."""
    until: datetime | None = None
    """Time until which it remains at least, by the store's clock."""
    rows: int | None = None
    """Rows by its log entry; None if there is none. The same holds for its bytes."""
    bytes: int | None = None
    rewritten_bytes: int | None = None
    """Total size of the files that were rewritten on the way to it; None without a log entry."""
    made_of: tuple[str, ...] = ()
    """The small file that was filled to make it; several where the log does not show which of them, and where they were
    merged.
    """
    filled_into: tuple[str, ...] = ()
    """The file that contains its rows since it was small and was filled or merged; several where the log does not show
    which.
    """

    def __str__(self) -> str:
        there = "" if self.is_there else ", not there"
        now = f" Now: {self.command}" if self.command else ""
        return f"{self.path} ({self.fate}{there}): {self.why} {self.next}{now}"


def made_of(file: DataFile, entry: LogEntry) -> tuple[DataFile, ...]:
    """Return the small files of which this one, which the entry added, may have been made; none for one of new rows
    alone.
    """
    return tuple(old for old in entry.filled if _has_rows_of(file, old, entry))


def filled_into(old: DataFile, entry: LogEntry) -> tuple[DataFile, ...]:
    """Return the files that may start with the rows of this one; none where the entry has replaced it without keeping
    them.
    """
    return tuple(file for file in entry.added if old in entry.filled and _has_rows_of(file, old, entry))


def shown_origin(file: DataFile, entry: LogEntry) -> str:
    """Return a sentence; empty where the file was not made by filling or merging."""
    sources = made_of(file, entry)
    if not sources:
        return ""
    cost = f"{shown_bytes(file.rewritten_bytes)} were written once more to come to it"
    per_byte = f"{file.rewritten_bytes / max(1, file.bytes):,.2f} for each byte of it"
    if entry.is_compaction:
        size = shown_bytes(sum(old.bytes for old in sources))
        made = f"merging {len(sources):,} small files of its partition, {size} together"
    else:
        small = " or ".join(f"{old.path} ({old.rows:,} rows, {shown_bytes(old.bytes)})" for old in sources)
        made = f"filling {small}"
    return f" It was made by {made}; all in all {cost}, {per_byte}."


def shown_end(old: DataFile, position: int, entry: LogEntry) -> str:
    """Return how it was replaced."""
    found = filled_into(old, entry)
    if not found:
        return f"replaced by instant {entry.instant} at position {position}"
    into = " or ".join(file.path for file in found)
    if entry.is_compaction:
        return f"merged with others by instant {entry.instant} at position {position}: its rows went into {into}"
    return f"filled by instant {entry.instant} at position {position}: its rows went into {into}"


def _has_rows_of(file: DataFile, old: DataFile, entry: LogEntry) -> bool:
    is_cost_of_fill = file.rewritten_bytes == old.rewritten_bytes + old.bytes
    return file.partition == old.partition and (entry.is_compaction or is_cost_of_fill)


NO_WRITER = "Tallymark will not touch it: unless another program needs it, delete it by the store's own means."


@dataclass(frozen=True, slots=True, kw_only=True)
class Bookkeeping:
    """A file without rows."""

    purpose: str
    instant: str | None = None
    """The instant that it belongs to, with whose end it is deleted."""
    position: int | None = None
    lasting: str | None = None
    """How long it remains, where that does not depend on an instant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BookkeepingFacts:
    url: str
    path: str
    kind: Bookkeeping
    is_there: bool
    writer: OpenInstant | None
    """Writer of the instant that it belongs to, until that is finished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    url: str
    path: str
    instant: str | None
    """Instant in its name; None for another form of name."""
    decision: tuple[int, LogEntry] | None
    """Decision of that instant; None while it is open, and where the entry is archived."""
    is_archived: bool
    """Whether that entry is archived."""
    file: DataFile | None
    """The file as that entry names it among those it added; of an archived one, as the table contains it now, or as the
    entry names it that replaced it.
    """
    replaced_by: tuple[int, LogEntry] | None
    is_there: bool
    remover: str | None
    """The instant that deletes the file, or has done so; None while there is none."""
    retained_until: float | None
    """Time until which it is retained for readers of older positions, in seconds since the epoch by the store's
    clock.
    """
    writer: OpenInstant | None
    """Writer that will deal with it: that of its instant, or of the entry that expires it, until that is finished."""
    is_marked: bool
    """Whether its instant, which is open, has marked it."""
    fenced_until: float | None
    """Time until which a fence occupies its name, in seconds since the epoch by the store's clock."""


def explained(facts: FileFacts | BookkeepingFacts) -> Explanation:
    if isinstance(facts, BookkeepingFacts):
        return _bookkeeping(facts)
    if facts.file is not None and facts.is_archived:
        return _replaced(facts, facts.file, None) if facts.replaced_by else _live(facts, facts.file, None)
    if facts.file is not None and facts.decision is not None:
        return _committed(facts, facts.file, facts.decision)
    if facts.decision is not None and facts.fenced_until is not None and facts.is_there:
        return _fence(facts, facts.decision, facts.fenced_until)
    if facts.decision is not None and facts.decision[1].kind != "clean":
        return _decided_without(facts, facts.decision)
    if facts.writer is not None and (facts.is_marked or facts.is_there):
        return _open(facts, facts.writer)
    return _unknown(facts)


def _committed(facts: FileFacts, file: DataFile, decision: tuple[int, LogEntry]) -> Explanation:
    added_at, entry = decision
    found = _live(facts, file, added_at) if facts.replaced_by is None else _replaced(facts, file, added_at)
    into = () if facts.replaced_by is None else filled_into(file, facts.replaced_by[1])
    return replace(
        found,
        why=f"{found.why}{shown_origin(file, entry)}",
        made_of=tuple(old.path for old in made_of(file, entry)),
        filled_into=tuple(new.path for new in into),
        rewritten_bytes=file.rewritten_bytes,
    )


def _live(facts: FileFacts, file: DataFile, added_at: int | None) -> Explanation:
    found = Explanation(
        path=facts.path,
        fate="live",
        is_there=facts.is_there,
        instant=facts.instant,
        position=added_at,
        why=f"It was committed by instant {facts.instant} {_shown_position(added_at)}, and is part of the table.",
        next="It stays until a later commit replaces it.",
        rows=file.rows,
        bytes=file.bytes,
    )
    if facts.is_there:
        return found
    return replace(
        found,
        fate="missing",
        why=f"{found.why} But it is not there: it was deleted by something else than Tallymark.",
        next="Scans of the table fail until it is restored from a copy, or its partition is overwritten.",
    )


def _shown_position(added_at: int | None) -> str:
    return "by an entry that is archived" if added_at is None else f"at position {added_at}"


def _replaced(facts: FileFacts, file: DataFile, added_at: int | None) -> Explanation:
    assert facts.replaced_by is not None
    position, entry = facts.replaced_by
    found = Explanation(
        path=facts.path,
        fate="replaced",
        is_there=facts.is_there,
        instant=facts.instant,
        position=position,
        why=f"It was committed {_shown_position(added_at)}, and {shown_end(file, position, entry)}. No reader of the "
        "table as it is sees it, only readers of the plain directory.",
        next=f"It has been deleted since, by instant {facts.remover}.",
        rows=file.rows,
        bytes=file.bytes,
    )
    if facts.retained_until is not None and facts.is_there:
        return _retained(facts, found, _moment(facts.retained_until))
    return _to_be_removed(facts, found) if facts.is_there else found


def _retained(facts: FileFacts, found: Explanation, until: datetime) -> Explanation:
    return replace(
        found,
        fate="retained",
        next=f"It stays for running queries and readers of older positions until {_shown(until)}; 'tallymark clean' "
        "after that, or a write soon after, lets it go, unless a reader has a lease on it.",
        command=f"tallymark clean {quote(facts.url)} --retain-hours 0",
        until=until,
    )


def _fence(facts: FileFacts, decision: tuple[int, LogEntry], until: float) -> Explanation:
    end = _moment(until)
    return Explanation(
        path=facts.path,
        fate="fence",
        is_there=True,
        instant=facts.instant,
        position=decision[0],
        why=f"It is a fence: a Parquet file without rows at a name of instant {facts.instant} that was marked and not "
        "committed. A put of that task attempt that is still on its way finds the name taken.",
        next=f"'tallymark clean' sweeps it after {_shown(end)}.",
        until=end,
    )


def _decided_without(facts: FileFacts, decision: tuple[int, LogEntry]) -> Explanation:
    position, entry = decision
    is_commit = entry.kind == "commit"
    what = (
        f"Instant {entry.instant} was committed at position {position} without it: it is of a task attempt that lost, "
        "a file whose fill was lost, or a name that was marked ahead and not used."
        if is_commit
        else f"Its instant {entry.instant} was rolled back at position {position}: none of its files count."
    )
    found = Explanation(
        path=facts.path,
        fate="left out" if is_commit else "rolled back",
        is_there=facts.is_there,
        instant=facts.instant,
        position=position,
        why=what,
        next="It is not there, and nothing is left to do.",
    )
    return _to_be_removed(facts, found) if facts.is_there else found


def _to_be_removed(facts: FileFacts, found: Explanation) -> Explanation:
    """Explain an existing file that the writer of that decision deletes before it finishes its instant."""
    if facts.writer is None:
        why = f"{found.why} It came back after it had been deleted, such as out of a copy."
        return replace(found, why=why, next=NO_WRITER)
    return replace(
        found, next=f"It is being deleted. {_by_whom(facts.writer)}", command=_command(facts.writer, facts.url)
    )


def _open(facts: FileFacts, writer: OpenInstant) -> Explanation:
    marked = "" if facts.is_marked else " It is not marked, which no task of ours would leave out."
    there = (
        f"It is of instant {facts.instant}, which is open: it is not committed, and no reader of the table sees it, "
        f"only readers of the plain directory.{marked}"
    )
    not_there = f"Instant {facts.instant}, which is open, has marked it: it may be on its way."
    return Explanation(
        path=facts.path,
        fate="uncommitted" if facts.is_there else "marked",
        is_there=facts.is_there,
        instant=facts.instant,
        position=None,
        why=there if facts.is_there else not_there,
        next=f"{_by_whom(writer)} It becomes part of the table if its job commits it; otherwise it is deleted."
        if writer.writer != "dead"
        else f"{_by_whom(writer)} Then it is deleted.",
        command=_command(writer, facts.url),
    )


def _unknown(facts: FileFacts) -> Explanation:
    if facts.instant is None:
        why = "Its name is none that Tallymark gives to data files or bookkeeping."
    elif facts.is_archived:
        why = f"Instant {facts.instant} is over, and its log entry is archived."
    elif facts.writer is not None:
        why = f"Instant {facts.instant}, which is open, has not marked it."
    else:
        why = f"Its name carries instant {facts.instant}, which has written nothing here: it is of another table."
    return Explanation(
        path=facts.path,
        fate="unknown",
        is_there=facts.is_there,
        instant=facts.instant,
        position=None,
        why=f"{why} It is not part of the table; readers of the plain directory may see it."
        if facts.is_there
        else f"{why} It is not there, either.",
        next=NO_WRITER if facts.is_there else "Nothing will happen.",
    )


def _bookkeeping(facts: BookkeepingFacts) -> Explanation:
    kind = facts.kind
    command = None
    if not facts.is_there:
        then = "It is not there."
    elif kind.lasting is not None:
        then = kind.lasting
    elif facts.writer is not None:
        then, command = (
            f"It goes when its instant has ended. {_by_whom(facts.writer)}",
            _command(facts.writer, facts.url),
        )
    else:
        then = "Its instant has ended, or never began: 'clean' drops it, if need be after a lease."
        command = f"tallymark clean {quote(facts.url)}"
    return Explanation(
        path=facts.path,
        fate="bookkeeping",
        is_there=facts.is_there,
        instant=kind.instant,
        position=kind.position,
        why=kind.purpose,
        next=then,
        command=command,
    )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _shown(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC by the store's clock"


def _by_whom(writer: OpenInstant) -> str:
    """Return the writer that ends the instant."""
    identity, age = writer.reservation.writer, writer.beat_age_s
    heartbeat = "no heartbeat" if age is None else f"last heartbeat {age:,.0f} s ago"
    who = f"The writer of instant {writer.reservation.instant}, process {identity.pid} on {identity.host}"
    if writer.writer == "dead":
        return f"{who}, is dead ({heartbeat}): the next write ends its instant."
    if writer.writer == "alive":
        return f"{who}, is at work ({heartbeat})."
    return f"{who}, may be alive or dead: the store lets us read only."


def _command(writer: OpenInstant, url: str) -> str | None:
    """Return the command that ends it: none that would interrupt a live writer."""
    return f"tallymark rollback {quote(url)}" if writer.writer == "dead" else None
