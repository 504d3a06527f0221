"""History: the state of a commit log after each entry. Pure, and equal for every reader of the same entries."""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import takewhile

from tallymark.engine.errors import CorruptObject
from tallymark.engine.timeline.entry import DataFile, LogEntry, check_features
from tallymark.engine.timeline.history_base import Decided, HistoryBase, batch_order, no_history
from tallymark.engine.timeline.instant import FLOOR
from tallymark.engine.timeline.log_hash import first_hash, next_hash

UNSETTLED_COUNT = 32
"""Newest entries whose instants a reservation may precede: a writer chooses its instant before it knows what others
commit at that moment. More than are won within one request.
"""

APPENDS_KEPT = 20
"""Number of newest appends whose sizes are kept: more than any sizing policy reads."""


class History:
    """State that follows from the entries from the first to ``head``. An instant's first entry counts.

    An entry that another log's writer has put is void, as an instant's second entry is: it carries another table's id,
    or another hash of the position before. So a job that outlives its table commits nothing into one that was created
    again, or restored, at the same place.

    The entries themselves are available from ``base`` on. A query for an earlier one fails: a caller that may need one
    calls ``CommitLog.reach`` first. Queries that need no entry cover the whole log, but for what was archived: of the
    entries up to ``start`` only what later writes need is known.
    """

    def __init__(self, base: HistoryBase | str = "") -> None:
        """``base`` is where the history starts, or the id of a table whose log is read from the first entry on."""
        if isinstance(base, str):
            base = no_history(base)
        self.table = base.table
        self.start = base.start
        """The position up to which the log is archived: earlier entries cannot be reached."""
        self.floor = base.floor
        """Every instant before this one is over."""
        self._reader_features = base.reader_features
        self.writer_features = base.writer_features
        """Features that a writer needs to know."""
        self._time_ms = base.time_ms
        self._base = base.position
        self._foreign: set[int] = set()
        """Positions after the base whose entries are another log's."""
        self._entries: list[LogEntry] = []
        self._decided = {decided.instant: decided for decided in base.decided}
        self._newest = max(self._decided, default=None)
        self._reached = deque(base.reached or [self.reached_instant], maxlen=UNSETTLED_COUNT + 1)
        """The newest instant as of each of the newest positions, or of the base."""
        replacing = (each.position for each in base.decided if each.is_replacing and each.position > base.start)
        self._replacing = list(dict.fromkeys(replacing))
        self._partitions = dict(base.partitions)
        self._txns = dict(base.txns)
        self._txn_floors = dict(base.txn_floors)
        self._producers = dict(base.producers)
        self._cleans = dict(base.cleans)
        self._horizon = base.horizon
        self._appends = deque(base.appends, maxlen=APPENDS_KEPT)
        self._hashes = [base.hash_before, base.hash] if base.position else [base.hash]
        """Hashes by position, up to ``head``."""

    @property
    def base(self) -> int:
        """The position from which on entries are available; 0 where all are."""
        return self._base

    @property
    def head(self) -> int:
        """The number of the newest entry; 0 before the first."""
        return self._base + len(self._entries)

    @property
    def time_ms(self) -> int:
        """When the newest entry was put, by its writer's clock, in milliseconds since 1970; never less than that of an
        entry before. 0 without entries, and where no entry has a time.
        """
        return self._time_ms

    def apply(self, entry: LogEntry) -> None:
        """Apply the entry at ``head + 1``.

        Raises UnsupportedTable if it needs a feature that this release does not know.
        """
        is_foreign = entry.table != self.table or (self.table != "" and entry.previous != self._hashes[-1])
        if not is_foreign:
            check_features("reader", entry.reader_features, source=f"entry {self.head + 1} of the log")
        self._entries.append(entry)
        self._hashes.append(next_hash(self._hashes[-1], self.head, entry))
        if is_foreign:
            self._foreign.add(self.head)
            return
        self._time_ms = max(self._time_ms, entry.time_ms)
        self._reader_features |= frozenset(entry.reader_features)
        self.writer_features |= frozenset(entry.writer_features)
        for member in entry.members:
            if self.decided(member.instant) is None:
                self._decide(member)
        self._reached.append(self.reached_instant)

    def _decide(self, entry: LogEntry) -> None:
        assert entry.kind != "group", "it is a member of one, or stands alone"
        is_replacing = entry.kind == "commit" and bool(entry.removed)
        self._decided[entry.instant] = Decided(self.head, entry.instant, entry.kind, is_replacing)
        self._newest = max(self._newest or entry.instant, entry.instant)
        if entry.kind == "commit":
            self._apply_commit(entry)
        if entry.kind == "clean":
            self._cleans[self.head] = range(self._horizon + 1, entry.horizon + 1)
            self._horizon = max(self._horizon, entry.horizon)

    def _apply_commit(self, entry: LogEntry) -> None:
        if entry.txn is not None:
            self._txns.setdefault(entry.txn, self.head)
        for producer, last in entry.producers:
            self._producers[producer] = max(last, self._producers.get(producer, last))
        if entry.operation == "append" and entry.added:
            self._appends.append((sum(file.rows for file in entry.added), sum(file.bytes for file in entry.added)))
        if entry.removed and self._replacing[-1:] != [self.head]:
            self._replacing.append(self.head)
        for file in entry.added:
            self._partitions.setdefault(file.partition, self.head)

    def as_base(self, start: int = 0, floor: str = FLOOR) -> HistoryBase:
        """Return everything but the entries, as of the head; of a log that is archived up to ``start``, where every
        instant before ``floor`` is over.
        """
        base = HistoryBase(
            table=self.table,
            position=self.head,
            start=self.start,
            floor=self.floor,
            time_ms=self._time_ms,
            reader_features=self._reader_features,
            writer_features=self.writer_features,
            hash=self._hashes[-1],
            hash_before=self._hashes[-2] if self.head else self._hashes[0],
            decided=tuple(self._decided.values()),
            txns=dict(self._txns),
            txn_floors=dict(self._txn_floors),
            producers=dict(self._producers),
            partitions=dict(self._partitions),
            cleans=dict(self._cleans),
            horizon=self._horizon,
            reached=tuple(self._reached),
            appends=tuple(self._appends),
        )
        return base.archived(start, floor)

    def forget(self, position: int) -> None:
        """Release the entries up to a position."""
        assert position <= self.head, f"position {position} of {self.head}"
        if position > self._base:
            del self._entries[: position - self._base]
            self._base = position

    def archive(self, start: int, floor: str) -> None:
        """Record that the log is archived up to ``start``, and that every instant before ``floor`` is over."""
        self.start, self.floor = max(start, self.start), max(floor, self.floor)
        self._replacing = [position for position in self._replacing if position > self.start]

    def take_back(self, earlier: Sequence[LogEntry]) -> None:
        """Add the entries right before ``base`` again.

        Raises:
            CorruptObject: the base is not of the log that contains these entries.
        """
        entries = [*earlier, *self._entries]
        if len(earlier) == self._base:
            self._hashes[:2] = self._hashes_leading_here(entries)
        self._entries = entries
        self._base -= len(earlier)

    def _hashes_leading_here(self, entries: Sequence[LogEntry]) -> list[bytes]:
        """Return the hashes of all positions up to the second whose hash is known: a base has two. ``entries``
        are all.
        """
        hashes = [first_hash(self.table)]
        for position, entry in enumerate(entries[: self.hashed_from + 1], 1):
            hashes.append(next_hash(hashes[-1], position, entry))
        if hashes[-2:] != self._hashes[:2]:
            raise CorruptObject(
                f"the entries up to position {self.hashed_from + 1} are not those that a checkpoint of this log was "
                "made of; delete .hoodie/.tallymark/checkpoint, which costs time and nothing else"
            )
        return hashes

    def members_at(self, position: int) -> tuple[LogEntry, ...]:
        """Return the decisions that count of the entry at a position."""
        members = self.entry(position).members
        decided = ((member, self._decided.get(member.instant)) for member in members)
        return tuple(member for member, found in decided if found is not None and found.position == position)

    def entry_of(self, decided: Decided) -> LogEntry:
        """Return the decision of an instant, whose position has to be available."""
        return next(member for member in self.entry(decided.position).members if member.instant == decided.instant)

    def entry(self, position: int) -> LogEntry:
        """Return the entry at a position, which has to be available, whether it counts or not."""
        assert self._base < position <= self.head, (
            f"entry {position} of {self._base + 1} to {self.head}: reach it first"
        )
        return self._entries[position - self._base - 1]

    @property
    def hashed_from(self) -> int:
        """The first position whose hash is known. It may be greater than ``base``: a hash needs all entries up to its
        position.
        """
        return self.head + 1 - len(self._hashes)

    def hash_at(self, position: int) -> str:
        """Return the hash that identifies the log up to a position from ``hashed_from`` to ``head``. Logs with the same
        hash agree up to there.
        """
        assert self.hashed_from <= position <= self.head, (
            f"the hash of position {position} needs the entries from the first on"
        )
        return self._hashes[position - self.hashed_from].hex()

    def linked(self, entry: LogEntry) -> LogEntry:
        """Return the entry as it is to be put at ``head + 1``: with the table's id, and the hash of the head."""
        if not self.table:
            return replace(entry, time_ms=0)
        time_ms = max(self._time_ms, entry.time_ms)
        return replace(entry, table=self.table, previous=self._hashes[-1], time_ms=time_ms)

    def own_before(self, position: int) -> int:
        """Return the newest position before this one whose entry is this log's; the first whose hash is known if that
        is later.
        """
        if position <= self.hashed_from + 1 and self.hashed_from:
            return self.hashed_from + 1
        position -= 1
        while position > self._base and position in self._foreign:
            position -= 1
        return position

    def has_at(self, position: int, entry: LogEntry) -> bool:
        """Return whether this log has the entry at a position, whose hash and the one before are known."""
        return next_hash(bytes.fromhex(self.hash_at(position - 1)), position, entry).hex() == self.hash_at(position)

    def after(self, position: int) -> Iterator[tuple[int, LogEntry]]:
        """Yield the decisions that count, beyond a position from ``base`` on, in order, with their positions."""
        assert position >= self._base, f"entries after {position}: reach it first; the base is {self._base}"
        for number in range(position + 1, self.head + 1):
            for member in self.members_at(number):
                yield number, member

    @property
    def decided_count(self) -> int:
        """Instants that are known to be decided."""
        return len(self._decided)

    def decided(self, instant: str) -> Decided | None:
        """Return where and how an instant was decided; None while it is open."""
        if (found := self._decided.get(instant)) is None and instant < self.floor:
            return Decided(0, instant, "archived", is_replacing=False)
        return found

    def decision(self, instant: str) -> tuple[int, LogEntry] | None:
        """Return the position and the entry that decided an instant, which has to be available; None while it
        is open, and where the entry is archived.
        """
        decided = self._decided.get(instant)
        if decided is None or decided.position <= self.start:
            return None
        return decided.position, self.entry_of(decided)

    def instants_at(self, position: int) -> list[str]:
        """Return the instants that the entry at a position has decided; none where it is void."""
        return [decided.instant for decided in self._decided.values() if decided.position == position]

    def txn_position(self, txn: str) -> int | None:
        """Return the position at which a txn was committed; None while it was not, and where ``last_archived`` is
        not None.
        """
        return self._txns.get(txn)

    def last_archived(self, txn: str) -> str | None:
        """Return the last archived batch of the txn's name if this txn may have been committed before it, or as it.

        None where the log knows whether the txn was committed.
        """
        name, _, batch = txn.partition(":")
        last = self._txn_floors.get(name)
        return None if last is None or txn in self._txns or batch_order(batch) > batch_order(last) else last

    def last_of(self, producer: str) -> int:
        """Return the sequence number of the producer's last batch that is committed; -1 where none is."""
        return self._producers.get(producer, -1)

    @property
    def newest_instant(self) -> str | None:
        return self._newest

    @property
    def reached_instant(self) -> str:
        """The newest instant, or the floor before the first: writers reserve only later ones."""
        return self._newest or FLOOR

    def accepts(self, instant: str) -> bool:
        """Return whether a writer may use the instant, that has put its reservation before this history was read.

        It is open, and later than those of all entries but the newest ``UNSETTLED_COUNT``; where fewer have been read
        since the base, than all of the base.
        """
        return self.decided(instant) is None and instant > self._reached[0]

    @property
    def settled_instant(self) -> str:
        """No writer uses an instant up to this one whose reservation is put from now on: for each of them, more entries
        have been read by then than have been read here.
        """
        return self._reached[0] if len(self._reached) == self._reached.maxlen else self.floor

    def has_passed(self, instant: str) -> bool:
        """Return whether no writer uses the instant whose reservation is put from now on."""
        return self.decided(instant) is not None or instant <= self.settled_instant

    def instants_after(self, position: int) -> list[str]:
        """Return the instants that are decided after a position."""
        return [decided.instant for decided in self._decided_after(position)]

    def _decided_after(self, position: int) -> list[Decided]:
        """Return the decisions after a position, in order. Takes as long as there are of them."""
        newest_first = takewhile(lambda each: each.position > position, reversed(self._decided.values()))
        return [*newest_first][::-1]

    @property
    def positions(self) -> list[int]:
        """The positions of the entries that count, in order; without archived ones."""
        return list(dict.fromkeys(each.position for each in self._decided_after(self.start)))

    def commits_after(self, position: int) -> list[int]:
        """Return the positions of the commits that count, after a position, in order; without archived ones."""
        return list(dict.fromkeys(each.position for each in self._decided_after(position) if each.kind == "commit"))

    @property
    def appends(self) -> tuple[tuple[int, int], ...]:
        """Rows and bytes of the files that the newest appends added, the newest first; at most ``APPENDS_KEPT``."""
        return tuple(reversed(self._appends))

    def files_at(self, position: int) -> tuple[DataFile, ...]:
        """Return the files that were live when the log ended at a position, from 0 to ``head``; sorted by path.

        Reads all entries up to there: for repeated queries, use a view.
        """
        assert 0 <= position <= self.head, f"position {position} of {self.head}"
        live: dict[str, DataFile] = {}
        assert not self.start, f"the entries up to {self.start} are archived"
        for number, entry in self.after(0):
            if number > position:
                break
            if entry.kind == "commit":
                for file in entry.removed:
                    live.pop(file.path, None)
                live.update((file.path, file) for file in entry.added)
        return tuple(live[path] for path in sorted(live))

    @property
    def horizon(self) -> int:
        """Files that were replaced up to this position may have been deleted by a clean; 0 before the first."""
        return self._horizon

    def replaced(self, positions: range) -> tuple[DataFile, ...]:
        """Return the files that commits at these positions have replaced, in their order; only such
        entries are needed.
        """
        replacing = self.replacing(positions)
        return tuple(file for position in replacing for each in self.members_at(position) for file in each.removed)

    def cleaned(self, position: int) -> range:
        """Return the positions whose replaced files the clean at a position has expired, and no clean before it."""
        return self._cleans[position]

    def files_expired_by(self, position: int) -> tuple[DataFile, ...]:
        """Return the files that the clean at a position has expired."""
        return self.replaced(self.cleaned(position))

    def replacing(self, positions: range) -> list[int]:
        """Return those of these positions whose commits have replaced files, in order; without archived ones, of
        whose replaced files none is left.
        """
        first, end = (bisect_left(self._replacing, position) for position in (positions.start, positions.stop))
        return self._replacing[first:end]

    def retained_since(self, horizon: int) -> int:
        """Return the first position from which on every one still has all its files, if replaced files are deleted up
        to ``horizon``.
        """
        count = bisect_right(self._replacing, horizon)
        return self._replacing[count - 1] if count else self.start

    def has_contained(self, partition: str) -> bool:
        """Return whether a file was ever committed to the partition."""
        return partition in self._partitions

    def new_partitions(self, position: int) -> dict[str, str]:
        """Return the partitions that got their first file ever at this position, each with the first instant that
        added one.
        """
        found: dict[str, str] = {}
        for member in self.members_at(position):
            for file in member.added:
                if self._partitions.get(file.partition) == position:
                    found.setdefault(file.partition, member.instant)
        return found
