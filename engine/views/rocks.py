"""A RocksDB database of this process's own, through ``rocksdict``: how it is set up, and what its errors mean."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from errno import EACCES, EDQUOT, EFBIG, ENOSPC, EROFS
from pathlib import Path
from threading import Event
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tallymark.engine.errors import MissingExtra
from tallymark.engine.views.store_folder import StoreFolder

if TYPE_CHECKING:
    from rocksdict import Cache, Options, Rdict, ReadOptions, WriteBatch

PREFIX_BYTES = 4
"""Of each key; a key is sought within its prefix only."""
MEMORY_BYTES_MIN = 4 * 1024 * 1024
"""RocksDB does not come with less, whatever it is told."""
_WRITTEN_SHARE = 4
"""A quarter of memory for what is not on disk yet, as eight buffers: the rest finds what is read."""
_BLOOM_BITS = 10
"""A key, in memory: one of a hundred files is looked into in vain."""
_LOG_BYTES = 1024 * 1024
_REFUSALS = tuple(os.strerror(number) for number in (ENOSPC, EDQUOT, EFBIG, EROFS, EACCES))
"""RocksDB tells them as text only."""


_STALL = "Write stall"
"""What RocksDB tells in place of waiting: on a full disk it might wait for ever."""
_STALL_PAUSE_S = 0.002
_STALL_COUNT_MAX = 5_000
"""Ten seconds, for a buffer of some megabytes."""


class RocksFailed(Exception):
    """The database cannot be trusted, or goes on no more."""

    def __init__(self, reason: str, *, is_refusal: bool = False) -> None:
        """``is_refusal``: for want of room or rights on its disk."""
        super().__init__(reason)
        self.is_refusal = is_refusal


def load_rocksdict() -> ModuleType:
    """Raises MissingExtra."""
    try:
        import rocksdict
    except ImportError as error:
        raise MissingExtra(
            "ViewSettings(store='key-value') needs rocksdict, which is not installed: pip install 'tallymark[views]', "
            "or take store='spillable'"
        ) from error
    return rocksdict


class Rocks:
    """Made when something is first written to it; after ``close`` the next write makes another.

    Its methods raise RocksFailed.
    """

    def __init__(self, parent: Path, *, memory_bytes: int) -> None:
        self._vendor = load_rocksdict()
        self._parent = parent
        self._memory_limit = max(memory_bytes, MEMORY_BYTES_MIN)
        self._folder: StoreFolder | None = None
        self._database: Rdict | None = None
        self._cache: Cache | None = None
        self._within_prefix: ReadOptions = self._vendor.ReadOptions()
        self._within_prefix.set_prefix_same_as_start(True)

    @property
    def path(self) -> Path:
        return self._parent if self._folder is None else self._folder.path

    @property
    def memory_bytes(self) -> int:
        """Read blocks, filters, indexes and what is not on disk yet."""
        return 0 if self._cache is None else self._cache.get_usage()

    @property
    def disk_bytes(self) -> int:
        return 0 if self._folder is None else self._folder.disk_bytes

    def write(self, changes: Mapping[bytes, bytes | None]) -> None:
        """All of them or none; None deletes a key. Waits while earlier writes are on their way to disk, if they are."""
        with self._trusted() as database:
            for _ in range(_STALL_COUNT_MAX):
                try:
                    return database.write(self._batch(changes))
                except Exception as error:
                    if _STALL not in str(error):
                        raise
                if database.property_int_value("rocksdb.background-errors"):
                    break
                Event().wait(_STALL_PAUSE_S)
            raise RocksFailed("what was written before does not get to disk", is_refusal=True)

    def get(self, key: bytes) -> bytes | None:
        with self._trusted() as database:
            value: bytes | None = database.get(key)
            return value

    def items(self, prefix: bytes) -> list[tuple[bytes, bytes]]:
        """All keys of a prefix, with their values. Where RocksDB cannot read on, it may end early."""
        found: list[tuple[bytes, bytes]] = []
        with self._trusted() as database:
            pairs: Any = database.items(from_key=prefix, read_opt=self._within_prefix)
            for key, value in pairs:
                if not key.startswith(prefix):
                    break
                found.append((key, value))
        return found

    def forget(self, prefix: bytes) -> None:
        """Give back the room of these keys, if that is possible."""
        after = (int.from_bytes(prefix) + 1).to_bytes(PREFIX_BYTES)
        with suppress(RocksFailed), self._trusted() as database:
            database.delete_range(prefix, after)

    def close(self) -> None:
        """It is gone. Doing so twice is fine. RocksDB takes a second to give up a database that is broken."""
        if self._database is not None:
            with suppress(Exception):  # it may be broken, and all that counts is that it is over
                self._database.close()
            self._database = self._cache = None
        if self._folder is not None:
            self._folder.remove()
            self._folder = None

    def _batch(self, changes: Mapping[bytes, bytes | None]) -> "WriteBatch":
        """For one attempt: RocksDB takes it, whatever it answers."""
        batch: WriteBatch = self._vendor.WriteBatch(raw_mode=True)
        for key, value in changes.items():
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        return batch

    @contextmanager
    def _trusted(self) -> "Iterator[Rdict]":
        try:
            yield self._opened()
        except RocksFailed:
            raise
        except Exception as error:  # of no class of its own
            is_refusal = isinstance(error, OSError) or any(text in str(error) for text in _REFUSALS)
            raise RocksFailed(str(error), is_refusal=is_refusal) from error

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
        options.set_write_buffer_size(written // 8)
        options.set_block_based_table_factory(tables)
        options.set_prefix_extractor(vendor.SliceTransform.create_fixed_prefix(PREFIX_BYTES))
        options.set_compression_type(vendor.DBCompressionType.lz4())
        options.set_keep_log_file_num(1)
        options.set_max_log_file_size(_LOG_BYTES)
        return options
