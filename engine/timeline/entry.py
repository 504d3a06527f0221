"""One entry of the commit log, in memory and in bytes (format 1, msgpack).

Owns: the content of an entry and its encoding. Does not own: where entries are stored and who wins a number (``log``).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import msgpack

from tallymark.engine.errors import CorruptObject
from tallymark.engine.packed import unpack
from tallymark.engine.timeline.instant import parse_instant
from tallymark.engine.timeline.scope import Scope
from tallymark.engine.timeline.summary import WriteSummary

FORMAT = 1

EntryKind = Literal["commit", "rollback", "clean"]
Operation = Literal["append", "overwrite", "rollback", "clean"]


@dataclass(frozen=True, slots=True)
class DataFile:
    """A data file that a task has published."""

    partition: str
    """Partition path, such as ``year=2013/month=1``; empty for a table without partitions."""
    name: str
    """``<file id>_<write token>_<instant>.parquet``"""
    rows: int
    bytes: int
    plain_bytes: int = 0
    """Size of its rows before they were encoded, as ``sizing.plain_bytes`` measures it; 0 where it was not recorded."""
    rewritten_bytes: int = 0
    """Total size of the files that were rewritten on the way to this one: for each rewrite, the bytes at that time."""

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
        return cls(_text(partition), _text(name), *map(_count, counts))

    def fields(self) -> list[object]:
        return [self.partition, self.name, self.rows, self.bytes, self.plain_bytes, self.rewritten_bytes]

    @property
    def path(self) -> str:
        return f"{self.partition}/{self.name}" if self.partition else self.name

    @property
    def file_id(self) -> str:
        return self.name.partition("_")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """What one instant did to the table. The instant's first entry counts; later ones are void."""

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
    """The committed files that this one replaces, as their own entries named them."""
    fenced: tuple[str, ...] = ()
    """Paths of zero-row files that occupy the names of lost task attempts."""
    txn: str | None = None
    """The name under which this write is committed exactly once, ``name:batch``; None if it has none."""
    request: str = ""
    """With a txn, the declared arguments of the write in a canonical form; a rerun has to declare the same."""
    summary: WriteSummary | None = None
    """The outcome of the write; None for a rollback, and in entries of releases that did not record it."""
    horizon: int = 0
    """Of a clean: files that were replaced up to this position may be deleted from now on."""
    registration: int = 0
    """The number under which the instant's writer registered; 0 in entries of releases without numbers."""
    unfinished: tuple[int, ...] = ()
    """Smaller numbers that were not over when the writer started."""
    unknown: dict[str, Any] = field(default_factory=dict, compare=False)
    """Fields of a newer release."""

    @property
    def filled(self) -> tuple[DataFile, ...]:
        """The small files whose rows an append has rewritten: an append replaces files for no other reason."""
        return self.removed if self.operation == "append" else ()

    @property
    def new_rows(self) -> int:
        """Rows that the write has added: an append's files also contain those of the small files that it has filled."""
        return sum(file.rows for file in self.added) - sum(file.rows for file in self.filled)


def encode_entry(entry: LogEntry) -> bytes:
    scope = entry.scope
    return _packed(
        {
            "format": FORMAT,
            "kind": entry.kind,
            "instant": entry.instant,
            "nonce": entry.nonce,
            "base": entry.base,
            "operation": entry.operation,
            "scope": None if scope is None else scope.fields(),
            "added": [file.fields() for file in entry.added],
            "removed": [file.fields() for file in entry.removed],
            "fenced": list(entry.fenced),
            "txn": entry.txn,
            "request": entry.request,
            "summary": None if entry.summary is None else entry.summary.fields(),
            "horizon": entry.horizon,
            "begun": entry.registration,
            "unfinished": list(entry.unfinished),
        }
    )


def decode_entry(data: bytes, *, source: str) -> LogEntry:
    """Return the entry that ``encode_entry`` wrote, or that of an earlier release.

    Raises CorruptObject, naming ``source``.
    """
    fields = _unpacked(data, source)
    if fields.pop("format", None) != FORMAT:
        raise CorruptObject(f"{source} is not of log format {FORMAT}; it was written by another release of Tallymark")
    try:
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
            summary=None if (summary := fields.pop("summary", None)) is None else WriteSummary.of_fields(summary),
            horizon=_count(fields.pop("horizon", 0)),
            registration=_count(fields.pop("begun", 0)),
            unfinished=tuple(map(_count, fields.pop("unfinished", ()))),
            unknown=fields,
        )
        parse_instant(entry.instant)
    except (KeyError, TypeError, ValueError, RecursionError, CorruptObject) as error:  # a deep value has no repr
        raise CorruptObject(f"{source} is not a log entry: {error!r}") from error
    return entry


def encode_pointer(nonce: str, body: str) -> bytes:
    """Return an entry that names the object with its body, which is too large for one small object."""
    return _packed({"format": FORMAT, "nonce": nonce, "body": body})


def decode_pointer(data: bytes, *, source: str) -> str | None:
    """Return the path of the body if these bytes are a pointer, else None. Raises CorruptObject, naming ``source``."""
    body = _unpacked(data, source).get("body")
    if body is not None and not isinstance(body, str):
        raise CorruptObject(f"{source} is not a log entry: its body is a {type(body).__name__}, and no path")
    return body


def _packed(fields: dict[str, object]) -> bytes:
    packed: bytes = msgpack.packb(fields, use_bin_type=True)
    return packed


def _unpacked(data: bytes, source: str) -> dict[str, Any]:
    try:
        fields = unpack(data)
    except ValueError as error:
        raise CorruptObject(f"{source} is not a log entry: {error!r}") from error
    if not isinstance(fields, dict):
        raise CorruptObject(f"{source} is not a log entry: not a map")
    return fields


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"{value!r} is not a count")
    return value


def _one_of(value: object, *allowed: Any) -> Any:
    if value not in allowed:
        raise ValueError(f"{value!r} is none of {allowed}")
    return value
