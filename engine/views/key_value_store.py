"""Journals of partitions in a RocksDB database of this process, through ``rocksdict``."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from errno import EACCES, EDQUOT, EFBIG, ENOSPC, EROFS
from pathlib import Path
from threading import Event
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tallymark.engine.errors import MissingExtra
from tallymark.engine.views.journals import DiskPieces, Journals, PiecesFailed, added_rows, joined, removed_rows
from tallymark.engine.views.store import DamagedStore, StoreStatistics
from tallymark.engine.views.store_folder import StoreFolder

if TYPE_CHECKING:
    from rocksdict import Cache, Options, Rdict, WriteBatch

_KEY_BYTES = 8
MEMORY_BYTES_MIN = 4 * 1024 * 1024
"""RocksDB needs at least this much, whatever the setting."""
_WRITTEN_SHARE = 4
"""A quarter of memory for writes that are not on disk yet: the rest is for reads."""
_BUFFER_COUNT = 8
"""Buffers of that memory: while one is written to, seven may be on their way to disk before a write has to wait."""
_BLOOM_BITS = 10
"""Bits of memory per key: one in a hundred files is read needlessly."""
_LOG_BYTES = 1024 * 1024
_REFUSALS = tuple(os.strerror(number) for number in (ENOSPC, EDQUOT, EFBIG, EROFS, EACCES))
"""Texts by which RocksDB reports refusals."""


_STALL = "Write stall"
"""RocksDB's error in place of waiting: on a full disk it might wait permanently."""
_STALL_PAUSE_S = 0.002
_STALL_COUNT_MAX = 5_000
"""Ten seconds, for a buffer of some megabytes."""


def load_rocksdict() -> ModuleType:
    """Import ``rocksdict``. Raises MissingExtra."""
    try:
        import rocksdict
    except ImportError as error:
        raise MissingExtra(
            "ViewSettings(store='key-value') needs rocksdict, which is not installed: pip install 'tallymark[views]', "
            "or take store='spillable'"
        ) from error
    return rocksdict


class Rocks(DiskPieces):
    """``Pieces`` in RocksDB. Any error of the database ends it, including a full disk."""

    def __init__(self, parent: Path, *, memory_bytes: int) -> None:
        """Raises MissingExtra."""
        super().__init__(parent)
        self._vendor = load_rocksdict()
        self._memory_limit = max(memory_bytes, MEMORY_BYTES_MIN)
        self._database: Rdict | None = None
        self._cache: Cache | None = None

    @property
    def memory_bytes(self) -> int:
        """Memory of read blocks, filters, indexes and writes that are not on disk yet."""
        return 0 if self._cache is None else self._cache.get_usage()

    def read(self, first: int, count: int) -> bytes:
        keys = [number.to_bytes(_KEY_BYTES) for number in range(first, first + count)]
        try:
            database: Any = self._opened()
            found = [database.get(keys[0])] if count == 1 else database.get(keys)
        except Exception as error:  # of no class of its own
            raise _failed(error) from error
        return joined(found, count)

    def write(self, pieces: Mapping[int, bytes | None]) -> None:
        """Write; waits while earlier writes are still on their way to disk."""
        with self._trusted() as database:
            for _ in range(_STALL_COUNT_MAX):
                try:
                    return database.write(self._batch(pieces))
                except Exception as error:
                    if _STALL not in str(error):
                        raise
                if database.property_int_value("rocksdb.background-errors"):
                    break
                Event().wait(_STALL_PAUSE_S)
            raise PiecesFailed("what was written before does not get to disk", is_refusal=True)

    def close(self) -> None:
        """Delete it; idempotent. RocksDB takes a second to close a broken database."""
        if self._database is not None:
            with suppress(Exception):  # it may be broken, and all that counts is that it is over
                self._database.close()
            self._database = self._cache = None
        super().close()

    def _batch(self, pieces: Mapping[int, bytes | None]) -> "WriteBatch":
        """Return a batch for one attempt: RocksDB consumes it, whatever the outcome."""
        batch: WriteBatch = self._vendor.WriteBatch(raw_mode=True)
        for number, data in pieces.items():
            if data is None:
                batch.delete(number.to_bytes(_KEY_BYTES))
            else:
                batch.put(number.to_bytes(_KEY_BYTES), data)
        return batch

    @contextmanager
    def _trusted(self) -> "Iterator[Rdict]":
        try:
            yield self._opened()
        except PiecesFailed:
            raise
        except Exception as error:  # of no class of its own
            raise _failed(error) from error

    def _opened(self) -> "Rdict":
        if self._database is None:
            self._folder = self._folder or StoreFolder(self._parent)
            database: Rdict = self._vendor.Rdict(str(self._folder.path / "rows"), self._options())
            writing = self._vendor.WriteOptions()
            writing.disable_wal = True  # nothing has to survive a crash
            writing.no_slowdown = True
            database.set_write_options(writing)
            self._database = database
        return self._database

    def _options(self) -> "Options":
        vendor = self._vendor
        cache = self._cache = vendor.Cache(self._memory_limit)
        written = self._memory_limit // _WRITTEN_SHARE
        tables = vendor.BlockBasedOptions()
        tables.set_block_cache(cache)
        tables.set_cache_index_and_filter_blocks(True)  # else they would count for nothing
        tables.set_bloom_filter(_BLOOM_BITS, False)
        options: Options = vendor.Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_write_buffer_manager(
            vendor.WriteBufferManager.new_write_buffer_manager_with_cache(written, False, cache)
        )
        options.set_write_buffer_size(written // _BUFFER_COUNT)
        options.set_max_write_buffer_number(_BUFFER_COUNT)
        options.set_block_based_table_factory(tables)
        options.set_compression_type(vendor.DBCompressionType.lz4())
        options.set_keep_log_file_num(1)
        options.set_max_log_file_size(_LOG_BYTES)
        return options


def _failed(error: Exception) -> PiecesFailed:
    is_refusal = isinstance(error, OSError) or any(text in str(error) for text in _REFUSALS)
    return PiecesFailed(str(error), is_refusal=is_refusal)


class KeyValueStore:
    """A ``ViewStore``. RocksDB stays within ``memory_bytes`` for recent writes and reads.

    A removed file that is missing is reported at the next query for the partition: nothing is read for a removal.
    """

    def __init__(self, folder: Path, *, memory_bytes: int) -> None:
        """Raises MissingExtra where ``rocksdict`` is not installed."""
        self._journals = Journals(Rocks(folder, memory_bytes=memory_bytes))

    def contains(self, partition: str) -> bool:
        return partition in self._journals.partitions

    def rows(self, partition: str) -> bytes | None:
        if not self.contains(partition):
            return None
        with self._whole_or_forgotten(partition):
            return self._journals.read(partition)

    def load(self, partition: str, block: bytes) -> None:
        with self._whole_or_forgotten(partition):
            self._journals.write(partition, block)

    def add(self, partition: str, block: bytes) -> None:
        if block:
            with self._whole_or_forgotten(partition):
                self._journals.append(partition, added_rows(block))

    def remove(self, partition: str, names: Collection[str], position: int) -> bool:
        if names:
            with self._whole_or_forgotten(partition):
                self._journals.append(partition, removed_rows(names, position), is_removal=True)
        return True

    def purge(self, partition: str, floor: int) -> None:
        if self.contains(partition):
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
        """Where a call about a partition fails, that partition is not stored after it, whatever was done."""
        try:
            yield
        except DamagedStore as damage:
            self.forget([partition])
            concerned = (damage.partitions or frozenset()) | {partition}
            raise type(damage)(str(damage), partitions=concerned) from damage
