"""The rows of a small file come some at a time: about as many bytes of Arrow, however many columns it has."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tallymark.engine.tasks import small_file_merge
from tallymark.engine.tasks.small_file_merge import batches_of
from tallymark.engine.timeline.entry import DataFile

ROWS = 20_000


def file_of(columns: int, *, row_group_rows: int, is_measured: bool) -> tuple[bytes, DataFile, pa.Table]:
    rows = pa.table({f"c{number}": [f"{row % 7:08}" for row in range(ROWS)] for number in range(columns)})
    sink = io.BytesIO()
    pq.write_table(rows, sink, row_group_size=row_group_rows, compression="zstd")
    return sink.getvalue(), DataFile("", "f", ROWS, sink.tell(), 12 * columns * ROWS if is_measured else 0), rows


@pytest.mark.parametrize("columns", [1, 20])
@pytest.mark.parametrize("row_group_rows", [1000, ROWS])
def test_batches_are_of_about_as_many_bytes(columns, row_group_rows, monkeypatch):
    monkeypatch.setattr(small_file_merge, "BATCH_BYTES", 100_000)
    data, file, rows = file_of(columns, row_group_rows=row_group_rows, is_measured=True)
    batches = list(batches_of(data, file, rows.schema))
    assert pa.Table.from_batches(batches) == rows
    assert max(batch.nbytes for batch in batches) <= 120_000
    assert len(batches) <= 2 * rows.nbytes / 100_000 + ROWS / row_group_rows


def test_of_a_file_that_was_not_measured_its_stored_bytes_tell(monkeypatch):
    monkeypatch.setattr(small_file_merge, "BATCH_BYTES", 10_000)
    data, file, rows = file_of(20, row_group_rows=ROWS, is_measured=False)
    batches = list(batches_of(data, file, rows.schema))
    assert pa.Table.from_batches(batches) == rows
    assert len(batches) > 1


def test_narrow_rows_come_in_arrows_own_measure():
    data, file, rows = file_of(1, row_group_rows=ROWS, is_measured=True)
    assert [batch.num_rows for batch in batches_of(data, file, rows.schema)] == [ROWS]
