"""Files are full at their maximum, and none is larger than a quarter beyond, whatever its rows come to."""

import io
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallymark.engine.arrow.field_ids import with_field_ids
from tallymark.engine.sizing import PlannedFile
from tallymark.engine.tasks.file_growth import (
    FOR_ROWS,
    LARGEST,
    STATISTICS_BYTES_MAX,
    FileGrowth,
    FooterSize,
    most_bytes,
)
from tests.engine.tasks.scene import Markers, memory, schema_of, ticket, write

NOISE = schema_of(noise=pa.binary())
MAX = 200_000


def noise(rows: int, bytes_a_row: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([os.urandom(bytes_a_row) for _ in range(rows)], pa.binary())], schema=NOISE
    )


def most_added_bytes(rows: pa.Table, footer: FooterSize) -> int:
    return most_bytes(rows) + 2 * footer.of_rows(rows)


SIZES = st.lists(st.sampled_from([0, 10, 1000, 30_000, 90_000]), min_size=1, max_size=300)


@given(SIZES, st.integers(1, 400_000), st.integers(0, int(1.125 * MAX)))
def test_a_row_group_never_takes_more_than_there_is_room_for(sizes, row_group_bytes, encoded_bytes):
    table = pa.table({"noise": pa.array([b"x" * size for size in sizes], pa.binary())})
    footer = FooterSize.of(table.schema)
    growth = FileGrowth(MAX, row_group_bytes, footer)
    count = growth.next_rows(table, encoded_bytes)
    room = FOR_ROWS * MAX - (encoded_bytes or footer.schema_bytes)
    assert 0 <= count <= len(sizes)
    assert count <= 1 or most_added_bytes(table.slice(0, count), footer) <= room
    if not count:
        assert encoded_bytes
        assert most_added_bytes(table.slice(0, 1), footer) > room


@given(st.integers(1, 2000), st.integers(1, 400_000))
def test_slices_of_a_large_table_are_about_a_row_group(rows, row_group_bytes):
    table = pa.table({"number": pa.array(range(rows), pa.int64())})
    growth = FileGrowth(1 << 40, row_group_bytes, FooterSize.of(table.schema))
    count = growth.next_rows(table, 0)
    row_bytes, slice_bytes = 8, table.slice(0, count).nbytes
    assert count in (1, rows) or abs(slice_bytes - row_group_bytes) <= max(0.5 * row_group_bytes, row_bytes)


LARGE_FIRST = [(20, 20_000), (3000, 100)]


@pytest.mark.parametrize("is_planned", [False, True])
@pytest.mark.parametrize(
    "batches", [[(2000, 1000)], [(50, 1000)] * 40, [(7, 30_000)] * 30, LARGE_FIRST * 3, LARGE_FIRST[::-1] * 3]
)
def test_no_file_is_larger_than_a_quarter_beyond_the_maximum(storage, batches, is_planned):
    planned = [PlannedFile("", 1, MAX)] if is_planned else []
    job = ticket(NOISE, max_file_bytes=MAX, row_group_bytes=150_000)
    report = write(job, [noise(*batch) for batch in batches], storage, Markers(), planned=planned)
    assert len(report.files) > 3
    assert max(file.bytes for file in report.files) <= LARGEST * MAX
    assert all(file.bytes >= 0.8 * MAX for file in report.files[:-1])


@pytest.mark.parametrize("type_", [pa.int8(), pa.int16(), pa.uint16(), pa.int32(), pa.list_(pa.int16())], ids=str)
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_integers_that_parquet_widens_are_counted_as_it_writes_them(type_, compression):
    values = [value % 120 for value in os.urandom(300_000)]
    column = pa.array([[value] for value in values] if pa.types.is_nested(type_) else values, type_)
    job = ticket(schema_of(small=type_), max_file_bytes=MAX, row_group_bytes=1 << 20, compression=compression)
    batch = pa.RecordBatch.from_arrays([column], schema=schema_of(small=type_))
    growth = FileGrowth(MAX, 1 << 20, FooterSize.of(batch.schema))
    for bytes_ in (0, 150_000, 220_000):
        assert growth.next_rows(pa.Table.from_batches([batch]), bytes_) < len(values)
    report = write(job, [batch], memory(has_staging=False))
    assert max(file.bytes for file in report.files) <= LARGEST * MAX


def test_a_file_that_was_planned_takes_an_eighth_more_than_was_expected():
    rows = [noise(50, 1000) for _ in range(4)]  # 200 kB and their footer
    job = ticket(NOISE, max_file_bytes=MAX, row_group_bytes=50_000)
    rolled = write(job, [*rows, noise(5, 1000)], memory(has_staging=False))
    planned = write(job, [*rows, noise(5, 1000)], memory(has_staging=False), planned=[PlannedFile("", 205, MAX)])
    assert (len(rolled.files), len(planned.files)) == (2, 1)


@pytest.mark.no_cover
@pytest.mark.parametrize(("columns", "width", "max_file_bytes"), [(300, 200, 4_000_000), (60, 1000, 1_000_000)])
@pytest.mark.parametrize("is_planned", [False, True])
def test_of_wide_rows_the_footer_counts_too(columns, width, max_file_bytes, is_planned):
    """Of each row group it tells the least and the greatest value of each column."""
    schema = schema_of(**{f"c{number}": pa.string() for number in range(columns)})
    batches = [
        pa.RecordBatch.from_arrays(
            [pa.array([os.urandom(width // 2).hex() for _ in range(40)]) for _ in range(columns)], schema=schema
        )
        for _ in range(4 * max_file_bytes // (40 * columns * width // 2))
    ]
    job = ticket(schema, max_file_bytes=max_file_bytes, row_group_bytes=1 << 20)
    planned = [PlannedFile("", 1, max_file_bytes)] if is_planned else []
    report = write(job, batches, memory(has_staging=False), Markers(), planned=planned)
    assert len(report.files) > 2
    assert max(file.bytes for file in report.files) <= LARGEST * max_file_bytes
    assert all(file.bytes >= 0.8 * max_file_bytes for file in report.files[:-1])


def footer_of(rows: pa.Table, groups: int) -> int:
    """What a real file has in its footer, so many row groups of the same rows in it."""
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, rows.schema, version="2.6", store_schema=True) as writer:
        for _ in range(groups):
            writer.write_table(rows, row_group_size=rows.num_rows)
    return int.from_bytes(sink.getvalue()[-8:-4], "little")


@pytest.mark.parametrize("width", [1, 100, 5000])
def test_a_footer_takes_no_more_than_is_expected_and_half_of_it_at_least(width):
    texts = {f"column number {number}": ["x" * width] * 3 for number in range(20)}
    price = pa.array([1, 2, 3], pa.decimal128(38, 10))
    rows = pa.table({**texts, "price": price, "tags": pa.array([[1], [], None], pa.list_(pa.int32()))})
    rows = rows.cast(with_field_ids(rows.schema)[0])
    footer = FooterSize.of(rows.schema)
    for groups in (1, 10):
        actual, expected = footer_of(rows, groups), footer.schema_bytes + groups * footer.of_rows(rows)
        assert actual - 1000 <= expected  # of the whole file, whatever its columns are
        assert actual >= expected / 2 or width > STATISTICS_BYTES_MAX
    assert footer.of_rows(rows) <= footer.of_any_rows
