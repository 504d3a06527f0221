import pytest

from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.views.block import pack_row, pack_rows, unpack_rows
from tallymark.engine.views.memory_store import ADDED_MAX, COPIED_BYTES_MAX, MemoryStore
from tallymark.engine.views.row import FileRow

ROWS = [FileRow(DataFile("p=1", f"{number}_0_1.parquet", 1, 2), number) for number in range(1, 3 * ADDED_MAX)]

LARGE = [FileRow(DataFile("p=1", f"first{number}{'x' * 1000}", 1, 2), 1) for number in range(COPIED_BYTES_MAX // 1000)]
before = pytest.mark.parametrize("first", [[], LARGE], ids=["small", "large"])


@before
def test_rows_that_come_one_by_one_stay_in_their_order_and_are_counted_whether_or_not_anybody_asks(first):
    store = MemoryStore()
    store.load("p=1", pack_rows(first))
    for number, row in enumerate(ROWS, 1):
        store.add("p=1", pack_row(row))
        assert store.size("p=1") == store.memory_bytes == len(pack_rows([*first, *ROWS[:number]]))
    block = store.rows("p=1")
    assert block is not None
    assert list(unpack_rows(block, "p=1")) == [*first, *ROWS]
    assert store.rows("p=1") is block


@before
def test_rows_that_nobody_has_asked_for_go_with_their_partition(first):
    store = MemoryStore()
    store.load("p=1", pack_rows([*first, ROWS[0]]))
    store.add("p=1", pack_row(ROWS[1]))
    store.forget(["p=1"])
    assert (store.rows("p=1"), store.contains("p=1"), store.memory_bytes) == (None, False, 0)
