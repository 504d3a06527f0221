import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tallymark.engine.partitions.index import PartitionedBatch
from tallymark.engine.tasks.row_buffer import RowBuffer


def placed(numbers, first=0):
    """Rows counted from ``first`` on, in these partitions; 8 bytes each."""
    rows = pa.record_batch({"row": pa.array(range(first, first + len(numbers)), pa.int64())})
    return PartitionedBatch(rows, pa.array(numbers, pa.int32()), tuple(dict.fromkeys(numbers)))


def rows_of(table):
    return table.column("row").to_pylist()


arrivals = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=40), max_size=12)


@settings(deadline=None)
@given(arrivals, st.integers(1, 400), st.integers(1, 800))
def test_no_row_is_lost_each_partition_keeps_its_order_and_memory_is_bounded(batches, group_bytes, buffer_bytes):
    buffer = RowBuffer(row_group_bytes=group_bytes, buffer_bytes=buffer_bytes)
    expected: dict[int, list[int]] = {}
    taken: dict[int, list[int]] = {}
    first = 0
    for numbers in batches:
        for row, number in enumerate(numbers, start=first):
            expected.setdefault(number, []).append(row)
        buffer.add(placed(numbers, first))
        first += len(numbers)
        while (partition := buffer.due()) is not None:
            taken.setdefault(partition, []).extend(rows_of(buffer.take(partition)))
        assert buffer.bytes <= max(buffer_bytes, 0) + 8 * len(numbers)
    for partition in buffer.remaining():
        taken.setdefault(partition, []).extend(rows_of(buffer.take(partition)))
    assert taken == expected
    assert buffer.bytes == 0


def test_a_full_row_group_is_due_and_less_is_not():
    buffer = RowBuffer(row_group_bytes=80, buffer_bytes=10_000)
    buffer.add(placed([0] * 9))
    assert buffer.due() is None
    buffer.add(placed([0]))
    assert buffer.due() == 0


def test_when_too_much_waits_the_fullest_partition_is_due_first():
    buffer = RowBuffer(row_group_bytes=10_000, buffer_bytes=400)
    buffer.add(placed([2] * 10))
    buffer.add(placed([1] * 15))
    assert buffer.due() is None
    buffer.add(placed([0] * 14))
    assert buffer.due() == 1


def test_waiting_rows_do_not_keep_the_batches_alive_that_they_came_in():
    buffer = RowBuffer(row_group_bytes=80_000, buffer_bytes=1_000_000)
    before = pa.total_allocated_bytes()
    for first in range(0, 100_000, 10_000):
        buffer.add(placed([0] * 9_999 + [1], first))
        while (partition := buffer.due()) is not None:
            buffer.take(partition)
    assert buffer.remaining() == (0, 1) or buffer.remaining() == (1,)
    held = pa.total_allocated_bytes() - before
    assert held <= 2 * buffer.bytes + 80_000


def test_rows_larger_than_the_pool_are_split_on_their_own():
    buffer = RowBuffer(row_group_bytes=40, buffer_bytes=1_000)
    buffer.add(placed([0, 1]))
    buffer.add(placed([1, 0] * 50, 2))
    assert buffer.remaining() == (0, 1)
    assert rows_of(buffer.take(0)) == [0, *range(3, 102, 2)]
