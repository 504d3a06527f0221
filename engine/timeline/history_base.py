"""Summary of the entries before a position, sufficient to read the later ones without them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from tallymark.engine.timeline.entry import InstantKind
from tallymark.engine.timeline.instant import FLOOR
from tallymark.engine.timeline.log_hash import first_hash

TXNS_KEPT = 8
"""Newest batches of each name of txns that are not archived. As many that ascend show that the caller orders its
batches: of a name with random ones, as many are in order once in 40,320 times.
"""

DecisionKind = InstantKind | Literal["archived"]


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
    producers: Mapping[str, int] = field(default_factory=dict)
    """By producer of a stream, the sequence number of its last batch that is committed."""
    partitions: Mapping[str, int] = field(default_factory=dict)
    """Of each that ever held a file, the position of its first."""
    cleans: Mapping[int, range] = field(default_factory=dict)
    """By the position of a clean, the positions whose replaced files it let go."""
    horizon: int = 0
    reached: tuple[str, ...] = ()
    """The newest instant as of each of the newest ``UNSETTLED_COUNT + 1`` positions, the newest last; fewer where the
    log has fewer, or where its checkpoint is of an earlier release.
    """
    appends: tuple[tuple[int, int], ...] = ()
    """Rows and bytes of the files that the newest appends added, the newest last."""

    def archived(self, start: int, floor: str) -> "HistoryBase":
        """Return the base of this log once it is archived up to ``start``, where every instant before ``floor`` is
        over; nothing of it is less archived than before.
        """
        start, floor = max(start, self.start), max(floor, self.floor)
        txns, txn_floors = _archived_txns(self.txns, self.txn_floors, start)
        return replace(
            self,
            start=start,
            floor=floor,
            decided=tuple(each for each in self.decided if each.position > start or each.instant >= floor),
            txns=txns,
            txn_floors=txn_floors,
            cleans={position: expired for position, expired in self.cleans.items() if position > start},
        )


def no_history(table: str, writer_features: frozenset[str] = frozenset()) -> HistoryBase:
    """Return the start of the log of a table with this id, whose writers need to know these features."""
    root = first_hash(table)
    return HistoryBase(table=table, writer_features=writer_features, hash=root, hash_before=root)


def batch_order(batch: str) -> tuple[tuple[int, int, str], ...]:
    """Return the key of a txn's batch in natural order: digits by their number, everything else by its characters."""
    parts = re.findall(r"\d+|\D+", batch, flags=re.ASCII)
    return tuple((0, int(part), "") if part[0] in "0123456789" else (1, 0, part) for part in parts)


def _archived_txns(
    txns: Mapping[str, int], floors: Mapping[str, str], start: int
) -> tuple[dict[str, int], dict[str, str]]:
    """Return the txns of a log that is archived up to ``start``, and by name the last batch that they lack.

    Of a name whose batches were committed in natural order, those up to there are left out, but for its newest: a later
    rerun of one is recognized by its order. The txns of any other name remain.
    """
    by_name: dict[str, list[tuple[int, str]]] = {}
    for txn, position in txns.items():
        name, _, batch = txn.partition(":")
        by_name.setdefault(name, []).append((position, batch))
    kept, last = dict(txns), dict(floors)
    for name, found in by_name.items():
        batches = [batch for _, batch in sorted(found)]
        orders = [batch_order(batch) for batch in batches]
        archived = batches[: min(sum(position <= start for position, _ in found), max(0, len(batches) - TXNS_KEPT))]
        if archived and orders == sorted(orders):
            last[name] = archived[-1]
            for batch in archived:
                del kept[f"{name}:{batch}"]
    return kept, last
