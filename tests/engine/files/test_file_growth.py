"""Files are full at their maximum, and none is larger than a quarter beyond, whatever its rows come to."""

import os

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallymark.engine.files.file_growth import FOR_ROWS, LARGEST, FileGrowth
from tallymark.engine.sizing import PlannedFile
from tests.engine.files.scene import Markers, memory, schema_of, ticket, write

NOISE = schema_of(noise=pa.binary())
MAX = 200_000


def noise(rows: int, bytes_a_row: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [pa.array([os.urandom(bytes_a_row) for _ in range(rows)], pa.binary())], schema=NOISE
    )


@given(st.integers(1, 3000), st.integers(0, 100), st.integers(1, 400_000), st.integers(0, int(1.125 * MAX)))
def test_a_row_group_never_takes_more_than_there_is_room_for(rows, bytes_a_row, row_group_bytes, encoded_bytes):
    growth = FileGrowth(MAX, row_group_bytes)
    table = pa.table({"noise": pa.array([b"x" * bytes_a_row] * rows, pa.binary())})
    count = growth.next_rows(table, encoded_bytes)
    assert 1 <= count <= rows
    assert count == 1 or table.slice(0, count).nbytes <= FOR_ROWS * MAX - encoded_bytes + 8


@given(st.integers(1, 2000), st.integers(1, 400_000))
def test_slices_of_a_large_table_are_about_a_row_group(rows, row_group_bytes):
    growth = FileGrowth(1 << 40, row_group_bytes)
    table = pa.table({"number": pa.array(range(rows), pa.int64())})
    count = growth.next_rows(table, 0)
    assert count in (1, rows) or 0.5 <= table.slice(0, count).nbytes / row_group_bytes <= 1.5


@pytest.mark.parametrize("is_planned", [False, True])
@pytest.mark.parametrize("batches", [[(2000, 1000)], [(50, 1000)] * 40, [(7, 30_000)] * 30])
def test_no_file_is_larger_than_a_quarter_beyond_the_maximum(batches, is_planned):
    storage = memory(has_staging=False)
    planned = [PlannedFile("", 1, MAX)] if is_planned else []
    job = ticket(NOISE, max_file_bytes=MAX, row_group_bytes=150_000)
    report = write(job, [noise(*batch) for batch in batches], storage, Markers(), planned=planned)
    assert len(report.files) > 3
    assert max(file.bytes for file in report.files) <= LARGEST * MAX
    assert all(file.bytes >= MAX for file in report.files[:-1])


def test_a_file_that_was_planned_takes_an_eighth_more_than_was_expected():
    rows = [noise(50, 1000) for _ in range(4)]  # 200 kB and their footer
    job = ticket(NOISE, max_file_bytes=MAX, row_group_bytes=50_000)
    rolled = write(job, [*rows, noise(5, 1000)], memory(has_staging=False))
    planned = write(job, [*rows, noise(5, 1000)], memory(has_staging=False), planned=[PlannedFile("", 205, MAX)])
    assert (len(rolled.files), len(planned.files)) == (2, 1)
