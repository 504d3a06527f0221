"""What a commit log says, entry by entry: pure, and the same for everybody who has read as far."""

from collections.abc import Iterator

from tallymark.engine.timeline.entry import DataFile, LogEntry
from tallymark.engine.timeline.log_hash import NO_ENTRY_HASH, next_hash


class History:
    """The entries from the first to ``head``, and what follows from them. An instant's first entry counts."""

    def __init__(self) -> None:
        self._entries: list[LogEntry] = []
        self._decided: dict[str, int] = {}
        self._partitions: dict[str, int] = {}
        self._txns: dict[str, int] = {}
        self._cleans: dict[int, range] = {}
        """By the position of a clean, the positions whose replaced files it let go."""
        self._horizon = 0
        self._hashes = [NO_ENTRY_HASH]
        """By position."""

    @property
    def head(self) -> int:
        """The number of the newest entry; 0 before the first."""
        return len(self._entries)

    def apply(self, entry: LogEntry) -> None:
        """Take in the entry at ``head + 1``."""
        self._entries.append(entry)
        self._hashes.append(next_hash(self._hashes[-1], self.head, entry))
        if entry.instant in self._decided:
            return
        self._decided[entry.instant] = self.head
        if entry.kind == "commit":
            if entry.txn is not None:
                self._txns.setdefault(entry.txn, self.head)
            for file in entry.added:
                self._partitions.setdefault(file.partition, self.head)
        if entry.kind == "clean":
            self._cleans[self.head] = range(self._horizon + 1, entry.horizon + 1)
            self._horizon = max(self._horizon, entry.horizon)

    def entry(self, position: int) -> LogEntry:
        return self._entries[position - 1]

    def hash_at(self, position: int) -> str:
        """Which log this is, up to a position from 0 to ``head``: two logs with the same one agree to there."""
        return self._hashes[position].hex()

    def after(self, position: int) -> Iterator[tuple[int, LogEntry]]:
        """The entries that count, beyond a position, in order, with their positions."""
        for number in range(position + 1, self.head + 1):
            entry = self.entry(number)
            if self._decided[entry.instant] == number:
                yield number, entry

    def newest_first(self) -> Iterator[LogEntry]:
        """The entries that count, from the newest on."""
        for number in range(self.head, 0, -1):
            entry = self.entry(number)
            if self._decided[entry.instant] == number:
                yield entry

    def decision(self, instant: str) -> tuple[int, LogEntry] | None:
        """The position and entry that decided an instant; None while it is open."""
        number = self._decided.get(instant)
        return None if number is None else (number, self.entry(number))

    def committed_as(self, txn: str) -> tuple[int, LogEntry] | None:
        """The position and entry of the commit of a txn; None while there is none."""
        number = self._txns.get(txn)
        return None if number is None else (number, self.entry(number))

    @property
    def newest_instant(self) -> str | None:
        return max(self._decided, default=None)

    def files_at(self, position: int) -> tuple[DataFile, ...]:
        """The files that were live when the log ended at a position, from 0 to ``head``; sorted by path.

        Goes through all entries up to there: who asks more than once has a view.
        """
        assert 0 <= position <= self.head, f"position {position} of {self.head}"
        live: dict[str, DataFile] = {}
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
        """What was replaced up to this position may have been deleted by a clean; 0 before the first."""
        return self._horizon

    def replaced(self, positions: range) -> tuple[DataFile, ...]:
        """The files that commits at these positions have replaced, in their order."""
        entries = (entry for number, entry in self.after(positions.start - 1) if number < positions.stop)
        return tuple(file for entry in entries if entry.kind == "commit" for file in entry.removed)

    def let_go(self, position: int) -> tuple[DataFile, ...]:
        """The files that the clean at a position has let go, and no clean before it."""
        return self.replaced(self._cleans[position])

    def retained_since(self, horizon: int) -> int:
        """Where replaced files are gone up to ``horizon``: every position from this one on still has all its files."""
        return max((number for number, entry in self.after(0) if number <= horizon and entry.removed), default=0)

    def has_held(self, partition: str) -> bool:
        """Whether a file was ever committed to the partition."""
        return partition in self._partitions

    def new_partitions(self, position: int) -> frozenset[str]:
        """The partitions that got their first file ever at this position."""
        entry = self.entry(position)
        return frozenset(file.partition for file in entry.added if self._partitions.get(file.partition) == position)
