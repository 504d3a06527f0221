"""Log entries for tests: made in a line, told apart by their instants."""

from collections.abc import Iterable
from typing import Any, get_type_hints

from tallymark.engine.settings import CommitSettings
from tallymark.engine.timeline.entry import DataFile, LogEntry, Operation
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.log import CommitLog
from tallymark.engine.timeline.scope import Scope
from tallymark.engine.timeline.summary import SizingSummary, WriteSummary

ALL = Scope(is_all=True)

SIZING: dict[str, Any] = {name: at for at, name in enumerate(get_type_hints(SizingSummary))} | {"size_error_p95": 0.25}
SUMMARY: dict[str, Any] = {name: at for at, name in enumerate(get_type_hints(WriteSummary))}
SUMMARY |= {"marker_mode": "mixed", "seconds": 1.5, "sizing": SIZING}
del SUMMARY["changes"]
"""The fields of a summary of a write, each with a value of its own."""


def instant(number: int) -> str:
    return f"20261121020304{number:03d}"


def data_file(partition: str, number: int, file_id: str = "f") -> DataFile:
    return DataFile(partition, f"{file_id}{number}-0_0-0-0_{instant(number)}.parquet", 1, 100)


def partitions(*paths: str) -> Scope:
    return Scope(partitions=frozenset(paths))


def below(*prefixes: str) -> Scope:
    return Scope(prefixes=frozenset(prefixes))


def commit(number: int, *, nonce: str | None = None, **fields) -> LogEntry:
    """The commit of instant ``number``: an append unless it has a scope."""
    operation: Operation = "append" if fields.get("scope") is None else "overwrite"
    base = fields.pop("base", 0)
    return LogEntry(
        kind="commit", instant=instant(number), nonce=nonce or f"n{number}", base=base, operation=operation, **fields
    )


def rollback(number: int, *, nonce: str | None = None) -> LogEntry:
    return LogEntry(kind="rollback", instant=instant(number), nonce=nonce or f"r{number}", base=0, operation="rollback")


def clean(number: int, horizon: int) -> LogEntry:
    return LogEntry(
        kind="clean", instant=instant(number), nonce=f"c{number}", base=0, operation="clean", horizon=horizon
    )


def history_of(entries: Iterable[LogEntry], base: History | None = None) -> History:
    """Of a log of these entries, or of a base and the entries after it."""
    history = History() if base is None else History(base.as_base())
    for entry in entries:
        history.apply(entry)
    return history


def log(backend, **settings) -> CommitLog:
    read = CommitLog(backend, CommitSettings(**settings))
    read.identify("")
    return read


async def win(backend, *entries: LogEntry) -> None:
    """Put the entries into the log, as writers that meet no trouble."""
    for entry in entries:
        await log(backend).win(entry, check=lambda _: None)
