from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.views.block import pack_row, unpack_rows
from tallymark.engine.views.memory_store import ADDED_MAX, MemoryStore
from tallymark.engine.views.row import FileRow

ROWS = [FileRow(DataFile("p=1", f"{number}_0_1.parquet", 1, 2), number) for number in range(1, 3 * ADDED_MAX)]


def test_rows_that_come_one_by_one_stay_in_their_order_and_are_counted_whether_or_not_anybody_asks():
    store = MemoryStore()
    store.load("p=1", b"")
    for number, row in enumerate(ROWS, 1):
        store.add("p=1", pack_row(row))
        assert store.size("p=1") == store.memory_bytes == sum(len(pack_row(each)) for each in ROWS[:number])
    block = store.rows("p=1")
    assert block is not None
    assert list(unpack_rows(block, "p=1")) == ROWS
    assert store.rows("p=1") is block


def test_rows_that_nobody_has_asked_for_go_with_their_partition():
    store = MemoryStore()
    store.load("p=1", pack_row(ROWS[0]))
    store.add("p=1", pack_row(ROWS[1]))
    store.forget(["p=1"])
    assert (store.rows("p=1"), store.holds("p=1"), store.memory_bytes) == (None, False, 0)
