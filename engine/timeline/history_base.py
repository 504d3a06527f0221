"""Summary of the entries before a position, sufficient to read the later ones without them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from tallymark.engine.timeline.entry import EntryKind
from tallymark.engine.timeline.instant import FLOOR
from tallymark.engine.timeline.log_hash import first_hash

DecisionKind = EntryKind | Literal["archived"]


class Decided(NamedTuple):
    """Summary of an entry that counts. A tuple, since a log has as many as entries."""

    position: int
    instant: str
    kind: DecisionKind
    """``archived``: the instant is over, and its entry is no longer known; the position is 0."""
    is_replacing: bool
    """Whether it replaced files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryBase:
    """State that follows from the entries up to a position, without the entries and the live files."""

    table: str
    """The id of the table; empty for a table of a release without ids, whose entries carry no hashes."""
    position: int = 0
    start: int = 0
    """The position up to which the log is archived: the entries up to there may be deleted."""
    floor: str = FLOOR
    """Every instant before this one is over: what it wrote is committed or removed, and nothing waits for it."""
    time_ms: int = 0
    """Of the newest entry."""
    reader_features: frozenset[str] = frozenset()
    """Features that a reader of later entries needs to know."""
    writer_features: frozenset[str] = frozenset()
    """Features that a writer needs to know."""
    hash: bytes
    """Of this position."""
    hash_before: bytes
    """Of the position before: with the entry of this one it gives ``hash``."""
    decided: tuple[Decided, ...] = ()
    """The entries that count, in order; without those up to ``start`` whose instants are before ``floor``."""
    txns: Mapping[str, int] = field(default_factory=dict)
    """Where each was committed."""
    txn_floors: Mapping[str, str] = field(default_factory=dict)
    """By the name of txns, the last batch that was archived: its earlier ones are not in ``txns`` any more."""
    partitions: Mapping[str, int] = field(default_factory=dict)
    """Of each that ever held a file, the position of its first."""
    cleans: Mapping[int, range] = field(default_factory=dict)
    """By the position of a clean, the positions whose replaced files it let go."""
    horizon: int = 0
    appends: tuple[tuple[int, int], ...] = ()
    """Rows and bytes of the files that the newest appends added, the newest last."""


def no_history(table: str, writer_features: frozenset[str] = frozenset()) -> HistoryBase:
    """Return the start of the log of a table with this id, whose writers need to know these features."""
    root = first_hash(table)
    return HistoryBase(table=table, writer_features=writer_features, hash=root, hash_before=root)
