"""One entry of the commit log, in memory and in bytes: a msgpack map, format 1, below this head.

    "TMLE"                          4 bytes
    CRC-32 of the rest              4 bytes, little-endian

In a table without an id, which an earlier release has created, it is the map alone.

An entry may name features. A release that does not know one of them must not read, or not write, the table from that
entry on.

Owns: the content of an entry and its encoding. Does not own: where entries are stored and who wins a number (``log``).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import msgpack

from tallymark.engine.errors import CorruptObject, UnsupportedTable
from tallymark.engine.packed import pack_checked, unpack, unpack_checked
from tallymark.engine.timeline.instant import parse_instant
from tallymark.engine.timeline.scope import Scope
from tallymark.engine.timeline.summary import WriteSummary

FORMAT = 1

CHANGES = "changes"
"""Feature of readers and writers: entries with the operations ``upsert`` and ``delete``, and files with key ranges."""

PRODUCERS = "producers"
"""Feature of writers: entries that name the producers of their rows, by which none of these is written twice."""

GROUPS = "groups"
"""Feature of readers: entries of kind ``group``, which decide several instants."""

READER_FEATURES: frozenset[str] = frozenset([CHANGES, GROUPS])
WRITER_FEATURES: frozenset[str] = frozenset([CHANGES, PRODUCERS])
"""Features that this release knows: of a table that it reads, and of one that it writes."""

_MAGIC = b"TMLE"

InstantKind = Literal["commit", "rollback", "clean"]
EntryKind = Literal[InstantKind, "group"]
Operation = Literal["append", "overwrite", "upsert", "delete", "rollback", "clean", "group"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Range of a column's values in a file, as ``arrow.key_range`` encodes them."""

    field_id: int
    lower: bytes | None
    """No value is less; None: unbounded."""
    upper: bytes | None
    nulls: int = 0

    @classmethod
    def of_fields(cls, fields: Sequence[Any]) -> "Bounds":
        """Return the bounds of ``fields``. Raises TypeError, ValueError."""
        field_id, lower, upper, nulls = fields[:4]
        lower, upper = (None if bound is None else _bytes(bound) for bound in (lower, upper))
        return cls(_count(field_id), lower, upper, _count(nulls))

    def fields(self) -> list[object]:
        return [self.field_id, self.lower, self.upper, self.nulls]


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file that a task has published.

    A file that an entry removes may lack what the entry that added it records, and an earlier release has ignored: they
    are matched by path.
    """

    partition: str
    """Partition path, such as ``year=2013/month=1``; empty for a table without partitions."""
    name: str
    """``<file id>_<write token>_<instant>.parquet``"""
    rows: int
    bytes: int
    plain_bytes: int = 0
    """Size of its rows before they were encoded, as ``sizing.plain_bytes`` measures it; 0 where it was not recorded."""
    rewritten_bytes: int = 0
    """Bytes that were written again on the way to this file: for each small file that was filled its size at that time,
    and for each merge of several the size of the file into which they were merged.
    """
    bounds: tuple[Bounds, ...] = field(default=(), kw_only=True)
    """Of columns whose values are looked up; a column without is unbounded."""

    @classmethod
    def of_fields(cls, fields: Sequence[Any]) -> "DataFile":
        """Return the file of ``fields``, of this release or another: earlier ones record four values, later ones may
        record more.

        Raises:
            TypeError, ValueError: no release wrote that.
        """
        partition, name, *counts = fields[:6]
        if len(counts) < 2:
            raise ValueError(f"{fields!r} is not a file")
        bounds = tuple(map(Bounds.of_fields, fields[6])) if len(fields) > 6 else ()
        return cls(_text(partition), _text(name), *map(_count, counts), bounds=bounds)

    def fields(self) -> list[object]:
        """Return what is stored of it; the bounds only where it has any."""
        bounds = [[each.fields() for each in self.bounds]] if self.bounds else []
        counts = self.rows, self.bytes, self.plain_bytes, self.rewritten_bytes
        return [self.partition, self.name, *counts, *bounds]

    @property
    def path(self) -> str:
        return f"{self.partition}/{self.name}" if self.partition else self.name

    @property
    def file_id(self) -> str:
        return self.name.partition("_")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """What one instant did to the table. The instant's first entry counts; later ones are void.

    An entry of kind ``group`` has the commits of several instants as its members, each of which counts or is void by
    itself; all that count are at its position.
    """

    kind: EntryKind
    instant: str
    nonce: str
    """Random; identifies the writer's entry after a lost response."""
    base: int
    """The position that the writer had read when it started."""
    operation: Operation
    scope: Scope | None = None
    """What an overwrite replaced; None for all other entries."""
    added: tuple[DataFile, ...] = ()
    removed: tuple[DataFile, ...] = ()
    """The committed files that this one replaces, as their own entries named them, but stored without their bounds: a
    deleted key may be one.
    """
    fenced: tuple[str, ...] = ()
    """Paths of zero-row files that occupy the names of lost task attempts."""
    txn: str | None = None
    """The name under which this write is committed exactly once, ``name:batch``; None if it has none."""
    request: str = ""
    """With a txn, the declared arguments of the write in a canonical form; a rerun has to declare the same."""
    producers: tuple[tuple[str, int], ...] = ()
    """Producers of rows of a stream, each with the sequence number of the last batch that is in this commit."""
    summary: WriteSummary | None = None
    """The outcome of the write; None for a rollback, and in entries of releases that did not record it."""
    horizon: int = 0
    """Of a clean: files that were replaced up to this position may be deleted from now on."""
    table: str = ""
    """The id of the table; empty in entries of releases without ids."""
    previous: bytes = b""
    """The hash of the position before, as the writer has read it; empty where ``table`` is."""
    time_ms: int = 0
    """When it was put, by its writer's clock, in milliseconds since 1970 in UTC; never earlier than the entry before.
    0 in entries without ``table``.
    """
    reader_features: tuple[str, ...] = ()
    """Features that a reader of the log needs to know from this entry on."""
    writer_features: tuple[str, ...] = ()
    """Features that a writer needs to know from this entry on."""
    group: tuple["LogEntry", ...] = ()
    """The members of a group, in the order in which they were checked for conflicts. Its other fields are of no
    instant: ``instant`` is that of the first member, ``added`` and ``removed`` are empty when it is decoded.
    """
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)
    """Fields of a newer release."""

    @classmethod
    def group_of(cls, members: Sequence["LogEntry"], *, nonce: str) -> "LogEntry":
        """Return the entry that decides these commits together."""
        return cls(
            kind="group",
            instant=members[0].instant,
            nonce=nonce,
            base=min(member.base for member in members),
            operation="group",
            group=tuple(members),
            reader_features=(GROUPS, *sorted({name for member in members for name in member.reader_features})),
            writer_features=tuple(sorted({name for member in members for name in member.writer_features})),
        )

    @property
    def members(self) -> tuple["LogEntry", ...]:
        """The decisions of the entry: those of a group, or the entry itself."""
        return self.group if self.kind == "group" else (self,)

    @property
    def is_plain_append(self) -> bool:
        """Whether the commit replaces nothing, and so conflicts with no other."""
        return self.operation == "append" and not self.removed

    @property
    def filled(self) -> tuple[DataFile, ...]:
        """The small files whose rows an append has rewritten: it has filled them, or merged them if it is a
        compaction. An append replaces files for no other reason.
        """
        return self.removed if self.operation == "append" else ()

    @property
    def is_compaction(self) -> bool:
        """Whether the commit has merged small files, and has no new rows."""
        return bool(self.filled) and self.new_rows == 0

    @property
    def new_rows(self) -> int:
        """Rows that the write has added: an append's files also contain those of the small files that it has filled,
        and an upsert's those that it has left as they were.
        """
        if self.summary is not None and self.summary.changes is not None:
            return self.summary.changes.inserted + self.summary.changes.updated
        return sum(file.rows for file in self.added) - sum(file.rows for file in self.filled)


def encode_entry(entry: LogEntry) -> bytes:
    group = {"group": [_fields(member) for member in entry.group]} if entry.kind == "group" else {}
    return _packed({"format": FORMAT, **_link(entry), **_fields(entry), **group})


def _fields(entry: LogEntry) -> dict[str, object]:
    scope = entry.scope
    return {
        "kind": entry.kind,
        "instant": entry.instant,
        "nonce": entry.nonce,
        "base": entry.base,
        "operation": entry.operation,
        "scope": None if scope is None else scope.fields(),
        "added": [file.fields() for file in entry.added],
        "removed": [replace(file, bounds=()).fields() for file in entry.removed],
        "fenced": list(entry.fenced),
        "txn": entry.txn,
        "request": entry.request,
        **({"producers": [list(each) for each in entry.producers]} if entry.producers else {}),
        "summary": None if entry.summary is None else entry.summary.fields(),
        "horizon": entry.horizon,
        **({"reader_features": list(entry.reader_features)} if entry.reader_features else {}),
        **({"writer_features": list(entry.writer_features)} if entry.writer_features else {}),
    }


def decode_entry(data: bytes, *, source: str) -> LogEntry:
    """Return the entry that ``encode_entry`` wrote, or that of an earlier release.

    Raises:
        CorruptObject: it is damaged; the message names ``source``.
        UnsupportedTable: it is of another format; or it cannot be decoded, and names a feature that this release does
            not know.
    """
    fields = _unpacked(data, source)
    if not isinstance(found := fields.pop("format", None), int):
        raise CorruptObject(f"{source} is not a log entry: it has no format; restore it from a copy")
    if found != FORMAT:
        raise UnsupportedTable(
            f"{source} is of log format {found!r}, and this release reads format {FORMAT}; install a newer release"
        )
    features = fields.get("reader_features", ())
    try:
        entry = _entry_of(fields)
        if entry.kind == "group":
            entry = replace(entry, group=_members_of(entry.unknown.pop("group")))
    except (KeyError, TypeError, ValueError, RecursionError, CorruptObject) as error:  # a deep value has no repr
        if isinstance(features, list):
            check_features("reader", map(str, features), source=source)
        raise CorruptObject(f"{source} is not a log entry: {error!r}; restore it from a copy") from error
    return entry


def _entry_of(fields: dict[str, Any]) -> LogEntry:
    """Return the entry of these fields, of which the unknown ones remain. Raises KeyError, TypeError, ValueError."""
    scope = fields.pop("scope")
    entry = LogEntry(
        kind=_one_of(fields.pop("kind"), *get_args(EntryKind)),
        instant=_text(fields.pop("instant")),
        nonce=_text(fields.pop("nonce")),
        base=_count(fields.pop("base")),
        operation=_one_of(fields.pop("operation"), *get_args(Operation)),
        scope=None if scope is None else Scope.of_fields(scope),
        added=tuple(map(DataFile.of_fields, fields.pop("added"))),
        removed=tuple(map(DataFile.of_fields, fields.pop("removed"))),
        fenced=tuple(map(_text, fields.pop("fenced"))),
        txn=None if (txn := fields.pop("txn", None)) is None else _text(txn),
        request=_text(fields.pop("request", "")),
        producers=tuple((_text(producer), _count(last)) for producer, last in fields.pop("producers", ())),
        summary=None if (summary := fields.pop("summary", None)) is None else WriteSummary.of_fields(summary),
        horizon=_count(fields.pop("horizon", 0)),
        table=_text(fields.pop("table", "")),
        previous=_bytes(fields.pop("previous", b"")),
        time_ms=_count(fields.pop("time", 0)),
        reader_features=tuple(map(_text, fields.pop("reader_features", ()))),
        writer_features=tuple(map(_text, fields.pop("writer_features", ()))),
        unknown=fields,
    )
    parse_instant(entry.instant)
    return entry


def _members_of(group: object) -> tuple[LogEntry, ...]:
    if not isinstance(group, list) or not all(isinstance(fields, dict) for fields in group):
        raise TypeError(f"{group!r} is not a group")
    members = tuple(map(_entry_of, group))
    if not members or len({member.instant for member in members}) < len(members):
        raise ValueError("a group has members, each with its own instant")
    if kinds := {member.kind for member in members} - {"commit"}:
        raise ValueError(f"a group has a member of kind {kinds.pop()!r}")
    return members


def check_features(role: Literal["reader", "writer"], names: Iterable[str], *, source: str) -> None:
    """Check that this release knows these features. Raises UnsupportedTable, with those that it does not know."""
    known = READER_FEATURES if role == "reader" else WRITER_FEATURES
    if unknown := sorted(set(names) - known):
        raise UnsupportedTable(
            f"{source} needs of each {role} the {'features' if unknown[1:] else 'feature'} {', '.join(unknown)}, which "
            "this release does not know; install a newer release of Tallymark"
        )


@dataclass(frozen=True, slots=True)
class EntryPointer:
    """An entry whose body is too large for one small object, and is in another."""

    body: str
    """Path of the body: an entry, whose own ``table``, ``previous`` and ``time_ms`` do not count."""
    table: str
    previous: bytes
    time_ms: int


def encode_pointer(entry: LogEntry, body: str) -> bytes:
    """Return the pointer to the entry's body at this path."""
    return _packed({"format": FORMAT, **_link(entry), "nonce": entry.nonce, "body": body})


def decode_pointer(data: bytes, *, source: str) -> EntryPointer | None:
    """Return the pointer if these bytes are one, else None. Raises CorruptObject, naming ``source``."""
    fields = _unpacked(data, source)
    if (body := fields.get("body")) is None:
        return None
    try:
        return EntryPointer(
            _text(body),
            _text(fields.get("table", "")),
            _bytes(fields.get("previous", b"")),
            _count(fields.get("time", 0)),
        )
    except (TypeError, RecursionError) as error:  # a deep value has no repr
        raise CorruptObject(f"{source} is not a log entry: {error!r}; restore it from a copy") from error


def _link(entry: LogEntry) -> dict[str, object]:
    link: dict[str, object] = {"table": entry.table, "previous": entry.previous} if entry.table else {}
    return {**link, "time": entry.time_ms}


def _packed(fields: dict[str, object]) -> bytes:
    if "table" in fields:
        return pack_checked(_MAGIC, fields)
    packed: bytes = msgpack.packb(fields)
    return packed


def _unpacked(data: bytes, source: str) -> dict[str, Any]:
    try:
        fields = unpack_checked(_MAGIC, data) if data.startswith(_MAGIC) else unpack(data)
    except ValueError as error:
        raise CorruptObject(f"{source} is not a log entry: {error}; restore it from a copy") from error
    if not isinstance(fields, dict):
        raise CorruptObject(f"{source} is not a log entry: not a map; restore it from a copy")
    return fields


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _bytes(value: object) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError(f"{value!r} is not bytes")
    return value


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"{value!r} is not a count")
    return value


def _one_of(value: object, *allowed: Any) -> Any:
    if value not in allowed:
        raise ValueError(f"{value!r} is none of {allowed}")
    return value
