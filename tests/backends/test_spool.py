"""Bytes of a data file before they are sent."""

import mmap
import os
import tempfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tallymark.backends import NotPermitted
from tallymark.backends.spool import Spool
from tests.support.mounted import mounted


def on_disk() -> int:
    """Open files of this process that have no name: a spool's, once it has outgrown memory."""
    links = [os.readlink(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd") if _is_open(number)]  # noqa: PTH115, PTH208
    return sum(link.startswith(tempfile.gettempdir()) and link.endswith("(deleted)") for link in links)


def _is_open(number: str) -> bool:
    return os.path.lexists(f"/proc/self/fd/{number}")


@pytest.mark.parametrize("memory_bytes", [0, 1, 9, 10, 11, 1000])
def test_what_was_written_is_had_whole_as_often_as_needed(memory_bytes):
    spool = Spool(memory_bytes)
    for piece in (b"01234", b"", b"56789"):
        spool.sink.write(piece)
    assert spool.sink.tell() == 10
    assert [bytes(spool.whole()[:]) for _ in range(2)] == [b"0123456789"] * 2
    spool.close()


@pytest.mark.parametrize("memory_bytes", [0, 1000])
def test_a_spool_may_be_empty(memory_bytes):
    spool = Spool(memory_bytes)
    assert len(spool.whole()) == 0
    spool.close()


def test_few_bytes_stay_in_memory_and_many_lie_in_a_file_that_is_mapped():
    before = on_disk()
    spool = Spool(1000)
    spool.sink.write(b"x" * 1000)
    assert on_disk() == before
    assert isinstance(spool.whole(), bytes)
    spool.sink.seek(0, os.SEEK_END)
    spool.sink.write(b"x")
    assert on_disk() == before + 1
    assert isinstance(spool.whole(), mmap.mmap)
    spool.close()
    assert on_disk() == before


def test_a_spool_that_is_forgotten_closes_its_file():
    before = on_disk()
    spool = Spool(0)
    spool.sink.write(b"x")
    assert on_disk() == before + 1
    del spool
    assert on_disk() == before


def test_parquet_is_written_to_it():
    rows = pa.table({"n": list(range(10_000))})
    spool = Spool(1000)
    with pq.ParquetWriter(spool.sink, rows.schema) as writer:
        writer.write_table(rows)
    assert pq.read_table(pa.BufferReader(bytes(spool.whole()[:]))) == rows
    spool.close()


def test_a_temporary_directory_that_is_full_is_named_with_the_remedy(tmp_path, monkeypatch):
    with mounted(tmp_path / "small", "size=64k") as small:
        monkeypatch.setattr(tempfile, "tempdir", str(small))
        spool = Spool(0)
        spool.sink.write(b"x" * 65536)
        spool.sink.write(b"a few bytes more, which wait in a buffer")
        with pytest.raises(NotPermitted, match=f"{small}: .*No space left .*nothing was sent; free space there"):
            spool.whole()
        spool.close()
