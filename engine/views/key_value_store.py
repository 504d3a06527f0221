"""Journals in RocksDB: what comes to a partition is put there under a key of its own, whatever else it holds."""

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tallymark.engine.views.journal import came, went
from tallymark.engine.views.journals import Journals
from tallymark.engine.views.rocks import Rocks
from tallymark.engine.views.store import DamagedStore, StoreStatistics


class KeyValueStore:
    """A ``ViewStore``. RocksDB keeps within ``memory_bytes``: what it has written lately, and what it has read.

    That a file went which is not there is told by who asks for the partition next: nothing is read for a removal.
    """

    def __init__(self, folder: Path, *, memory_bytes: int) -> None:
        """Raises MissingExtra where ``rocksdict`` is not installed."""
        self._journals = Journals(Rocks(folder, memory_bytes=memory_bytes))

    def holds(self, partition: str) -> bool:
        return partition in self._journals.partitions

    def rows(self, partition: str) -> bytes | None:
        if not self.holds(partition):
            return None
        try:
            return self._journals.read(partition)
        except DamagedStore as damage:
            raise self._forgotten(partition, damage) from damage

    def load(self, partition: str, block: bytes) -> None:
        with self._whole_or_forgotten(partition):
            self._journals.write(partition, block)

    def add(self, partition: str, block: bytes) -> None:
        if block:
            with self._whole_or_forgotten(partition):
                self._journals.append(partition, came(block))

    def remove(self, partition: str, names: Collection[str], position: int) -> bool:
        if names:
            with self._whole_or_forgotten(partition):
                self._journals.append(partition, went(names, position), is_removal=True)
        return True

    def purge(self, partition: str, floor: int) -> None:
        if self.holds(partition):
            with self._whole_or_forgotten(partition):
                self._journals.purge(partition, floor)

    def forget(self, partitions: Iterable[str] | None = None) -> None:
        if partitions is None:
            self.close()
            return
        for partition in partitions:
            self._journals.forget(partition)

    def partitions(self) -> Collection[str]:
        return self._journals.partitions

    def statistics(self) -> StoreStatistics:
        return StoreStatistics(
            partitions=len(self._journals.partitions),
            memory_bytes=self._journals.memory_bytes,
            disk_bytes=self._journals.disk_bytes,
            spilled=self._journals.written,
            restored=self._journals.read_back,
        )

    def close(self) -> None:
        self._journals.close()

    @contextmanager
    def _whole_or_forgotten(self, partition: str) -> Iterator[None]:
        """Where a call about a partition fails, that partition is not held after it, whatever was done."""
        try:
            yield
        except DamagedStore as damage:
            raise self._forgotten(partition, damage) from damage

    def _forgotten(self, partition: str, damage: DamagedStore) -> DamagedStore:
        self.forget([partition])
        concerned = (damage.partitions or frozenset()) | {partition}
        return type(damage)(str(damage), partitions=concerned)
