"""A model of a table's layout: files that flushes add and that the policy of merges replaces, without storage."""

from collections import defaultdict
from collections.abc import Mapping
from itertools import count

from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.upkeep.due_partitions import DuePartitions
from tallymark.engine.upkeep.merge_policy import files_to_merge, is_open, merged_rewritten

MIB = 1024 * 1024
TARGET = 120 * MIB


class Layout:
    """The files of a table, and the bytes written for them."""

    def __init__(self, *, target_bytes: int = TARGET, quiet_s: float = 3600, footer_bytes: int = 0) -> None:
        """``footer_bytes``: what each file takes beside its rows, and a merge saves."""
        self.target_bytes = target_bytes
        self.due = DuePartitions(target_bytes=target_bytes, quiet_s=quiet_s)
        self._footer_bytes = footer_bytes
        self._numbers = count()
        self.open: dict[str, dict[str, DataFile]] = defaultdict(dict)
        self.closed: dict[str, list[DataFile]] = defaultdict(list)
        self.flushed_bytes = self.merged_bytes = 0
        self.flushes_open: dict[str, int] = defaultdict(int)
        """Flushes of a partition since its last file was closed: at least those in its open files."""
        self.writes: dict[str, int] = {}
        """How often the rows of a file were written, at most."""

    def flush(self, partition: str, bytes_: int, *, now: float) -> None:
        self.flushed_bytes += bytes_
        self.flushes_open[partition] += 1
        file = DataFile(partition, f"{next(self._numbers):09}", 1, bytes_)
        self.writes[file.name] = 1
        self._add(file)
        self.due.added([file], now=now)

    def merge_due(self, *, now: float, is_ending: bool = False) -> int:
        """Do what is due, once. Return how many bytes that read and wrote; 0 where nothing was."""
        moved = 0
        for partition, is_quiet in self.due.take(now=now, is_ending=is_ending).items():
            merged = self._merge(partition, is_quiet=is_quiet)
            moved += merged
            if not merged:
                self.due.done(partition, is_quiet=is_quiet)
        return moved

    def _merge(self, partition: str, *, is_quiet: bool) -> int:
        files = self.open[partition]
        chosen = files_to_merge(files.values(), target_bytes=self.target_bytes, is_quiet=is_quiet)
        if not chosen:
            return 0
        for file in chosen:
            del files[file.name]
        size = sum(file.bytes for file in chosen) - self._footer_bytes * (len(chosen) - 1)
        [rewritten] = merged_rewritten(chosen, [size])
        rows = sum(file.rows for file in chosen)
        new = DataFile(partition, f"{next(self._numbers):09}", rows, size, rewritten_bytes=rewritten)
        self.writes[new.name] = 1 + max(self.writes.pop(file.name) for file in chosen)
        self._add(new)
        self.merged_bytes += size
        return size + sum(file.bytes for file in chosen)

    def _add(self, file: DataFile) -> None:
        if is_open(file, target_bytes=self.target_bytes):
            self.open[file.partition][file.name] = file
        else:
            self.closed[file.partition].append(file)
            self.flushes_open[file.partition] = sum(each.rows for each in self.open[file.partition].values())

    @property
    def files(self) -> int:
        return sum(map(len, self.open.values())) + sum(map(len, self.closed.values()))

    @property
    def least_files(self) -> int:
        return sum(-(-size // self.target_bytes) for size in self.bytes.values())

    @property
    def bytes(self) -> Mapping[str, int]:
        """By partition."""
        found: dict[str, int] = defaultdict(int)
        for partition, files in self.open.items():
            found[partition] += sum(file.bytes for file in files.values())
        for partition, closed in self.closed.items():
            found[partition] += sum(file.bytes for file in closed)
        return found

    @property
    def written_per_byte(self) -> float:
        return (self.flushed_bytes + self.merged_bytes) / self.flushed_bytes
