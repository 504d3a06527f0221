"""Journals on a disk: what comes to a partition is written, and nothing that is there already, but now and then."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallymark.engine.errors import CorruptObject
from tallymark.engine.views.block import pack_row, pack_rows, unpack_rows
from tallymark.engine.views.journals import (
    FOLDED_BYTES_MIN,
    PIECE_BYTES,
    TAIL_COUNT_MAX,
    Journals,
    PiecesFailed,
    added_rows,
    block_of,
    kept_block,
    removed_rows,
)
from tallymark.engine.views.store import DamagedStore, FullStore
from tests.engine.views.stores import row
from tests.support.examples import examples
from tests.support.memory import taken_bytes

ROW = pack_row(row("first"))


class CountedPieces:
    """In memory: what was read and written, and what is refused."""

    path = Path("nowhere")
    memory_bytes = 0

    def __init__(self) -> None:
        self.held: dict[int, bytes] = {}
        self.bytes_read = self.bytes_written = 0
        self.is_full = False

    @property
    def disk_bytes(self) -> int:
        return sum(map(len, self.held.values()))

    def read(self, first: int, count: int) -> bytes:
        try:
            data = b"".join(self.held[number] for number in range(first, first + count))
        except KeyError as error:
            raise PiecesFailed("gone") from error
        self.bytes_read += len(data)
        return data

    def write(self, pieces: Mapping[int, bytes | None]) -> None:
        if self.is_full and any(pieces.values()):
            raise PiecesFailed("full", is_refusal=True, is_over=False)
        for number, data in pieces.items():
            if data is None:
                self.held.pop(number, None)
            else:
                self.held[number] = data
                self.bytes_written += len(data)

    def close(self) -> None:
        self.held.clear()


def some_rows(count: int, begin: int = 0) -> bytes:
    return pack_rows(row(f"{number:036d}-0_0_20260101000000000.parquet") for number in range(begin, begin + count))


@settings(max_examples=examples(30), deadline=None)
@given(st.randoms(use_true_random=False))
def test_whatever_comes_in_whatever_sizes_is_what_is_read(random):
    pieces = CountedPieces()
    journals = Journals(pieces, waiting_bytes_max=random.choice((0, 2000)))
    held: dict[str, bytes] = {}
    for number in range(random.randint(1, 200)):
        partition = random.choice("ab")
        size = random.choice((0, 1, 3, 3, 3, 300, 700))
        if partition not in held or random.random() < 0.02:
            held[partition] = some_rows(size, number * 1000)
            journals.write(partition, held[partition])
        else:
            new = some_rows(size, number * 1000)
            held[partition] += new
            journals.append(partition, added_rows(new))
        assert journals.waiting_bytes <= 2000
    for partition, block in held.items():
        assert journals.read(partition) == block
    journals.flush()
    assert journals.waiting_bytes == 0
    assert all(0 < len(piece) <= PIECE_BYTES for piece in pieces.held.values())
    for partition, block in held.items():
        assert journals.read(partition) == block
        journals.forget(partition)
    assert not pieces.held


@pytest.mark.parametrize("files", [100, 10_000])
def test_what_a_commit_writes_does_not_grow_with_the_partition(files):
    pieces = CountedPieces()
    journals = Journals(pieces)
    journals.write("a", some_rows(files))
    pieces.bytes_written = pieces.bytes_read = 0
    for number in range(10 * TAIL_COUNT_MAX):
        journals.append("a", added_rows(some_rows(1, files + number)))
    new = 10 * TAIL_COUNT_MAX * len(added_rows(some_rows(1)))
    assert pieces.bytes_read <= 10 * (PIECE_BYTES + new / 10)
    assert pieces.bytes_written <= new + 10 * (PIECE_BYTES + new / 10)
    assert len(pieces.held) <= TAIL_COUNT_MAX + 1 + (len(some_rows(files)) + new) // PIECE_BYTES + 1


def test_records_that_wait_are_not_copied_when_another_comes():
    journals = Journals(CountedPieces(), waiting_bytes_max=1 << 30)
    journals.write("a", ROW)
    record = added_rows(some_rows(10))
    count = 1000

    def come() -> None:
        for _ in range(count):
            journals.append("a", record)

    assert taken_bytes(come) < 1.3 * count * len(record), "a copy of what waits would take as much again"
    assert journals.read("a") == ROW + count * some_rows(10)


def test_a_journal_of_which_much_went_is_written_anew():
    pieces = CountedPieces()
    journals = Journals(pieces)
    rows = some_rows(1000)
    journals.write("a", rows)
    for number in range(1000):
        name = f"{number:036d}-0_0_20260101000000000.parquet"
        journals.append("a", removed_rows([name], 5), is_removal=True)
        assert pieces.disk_bytes <= len(added_rows(rows)) * 1.5 + FOLDED_BYTES_MIN
    assert journals.written > 2
    assert len(journals.read("a")) == len(rows)
    journals.purge("a", 5)
    assert journals.read("a") == b""
    assert not pieces.held


def test_a_piece_that_is_another_one_is_not_believed_and_all_is_over():
    pieces = CountedPieces()
    journals = Journals(pieces)
    journals.write("a", ROW)
    journals.write("b", ROW)
    before = dict(pieces.held)
    journals.append("a", added_rows(pack_row(row("second"))))
    journals.append("b", added_rows(pack_row(row("second"))))
    pieces.held.update(dict.fromkeys(pieces.held.keys() - before, added_rows(pack_row(row("secnod")))))
    with pytest.raises(DamagedStore, match="not those that were written") as damage:
        journals.read("a")
    assert damage.value.partitions == frozenset("ab")
    assert not journals.partitions


def test_records_that_a_full_disk_refuses_wait_and_are_read_all_the_same():
    pieces = CountedPieces()
    journals = Journals(pieces, waiting_bytes_max=1000)
    journals.write("a", ROW)
    journals.write("b", ROW)
    journals.append("a", added_rows(pack_row(row("second"))))
    pieces.is_full = True
    with pytest.raises(FullStore) as full:
        journals.append("b", added_rows(some_rows(20)))
    assert full.value.partitions == frozenset()
    journals.forget("b")
    assert journals.read("a") == ROW + pack_row(row("second"))
    pieces.is_full = False
    journals.flush()
    assert journals.read("a") == ROW + pack_row(row("second"))


@given(st.randoms(use_true_random=False))
def test_a_journal_comes_to_the_rows_that_came_less_those_that_went(random):
    journal, rows = b"", {}
    for position in range(1, 1 + random.randint(0, 30)):
        live = sorted(name for name, each in rows.items() if not each.removed_at)
        if live and random.random() < 0.5:
            names = random.sample(live, random.randint(1, len(live)))
            journal += removed_rows(names, position)
            rows |= {name: row(name, added_at=rows[name].added_at, removed_at=position) for name in names}
        else:
            new = [row(f"f{position}x{'é' * each}", added_at=position) for each in range(random.randint(0, 5))]
            journal += added_rows(pack_rows(new))
            rows |= {each.file.name: each for each in new}
    floor = random.randint(0, 30)
    assert list(unpack_rows(block_of(journal), "month=1")) == list(rows.values())
    kept = [each for each in rows.values() if not 0 < each.removed_at <= floor]
    assert list(unpack_rows(kept_block(journal, floor), "month=1")) == kept


@pytest.mark.parametrize("names", [("absent",), ("first", "absent"), ("gone",), ("first", "first")])
def test_a_journal_of_which_a_file_went_that_was_not_there_is_refused(names):
    journal = added_rows(pack_rows([row("first"), row("gone", removed_at=3)]))
    for position, name in enumerate(names, 5):
        journal += removed_rows([name], position)
    with pytest.raises(CorruptObject, match=names[-1]):
        block_of(journal)
