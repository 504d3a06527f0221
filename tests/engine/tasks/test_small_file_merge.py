"""Old rows of small files, and the planned files that they go to."""

import io
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import anyio
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallymark.backends.errors import Unavailable
from tallymark.engine.errors import CorruptObject, InvalidRequest
from tallymark.engine.sizing import PlannedFile
from tallymark.engine.tasks import small_file_merge
from tallymark.engine.tasks.report import Fill, TaskReport
from tallymark.engine.tasks.small_file_merge import batches_of
from tallymark.engine.timeline.entry import DataFile
from tests.engine.tasks.scene import FLIGHTS, Markers, WatchedBackend, flights, memory, stored, tables, ticket, write

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


def small_file(backend, name: str, rows: pa.RecordBatch, *, row_group_rows: int = 4) -> DataFile:
    """A committed file of the rows' one month, in row groups of its own."""
    sink = io.BytesIO()
    table = pa.Table.from_batches([rows])
    pq.write_table(table, sink, row_group_size=row_group_rows)
    file = DataFile(f"month={rows.column('month')[0].as_py()}", name, rows.num_rows, len(sink.getvalue()), 7, 100)
    anyio.run(backend.put, file.path, sink.getvalue())
    return file


class Reader:
    """Reads at once, and counts."""

    def __init__(self, backend) -> None:
        self._backend = backend
        self.asked: list[str] = []

    def __call__(self, path: str) -> Future[bytes]:
        self.asked.append(path)
        answer: Future[bytes] = Future()
        try:
            answer.set_result(anyio.run(self._backend.get, path))
        except Exception as error:
            answer.set_exception(error)
        return answer


def planned(*fills: DataFile) -> list[PlannedFile]:
    return [PlannedFile(old.partition, 10, 10_000, old) for old in fills]


def filled(backend, batches, *fills: DataFile, markers: Markers | None = None, **settings) -> TaskReport:
    markers = markers or Markers()
    job = ticket(FLIGHTS, "month", **settings)
    return write(job, batches, WatchedBackend(backend, markers), markers, planned=planned(*fills), read=Reader(backend))


def numbers(backend, report: TaskReport) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for partition, table in tables(backend, report):
        flights_there: list[Any] = table.column("flight").to_pylist()  # of no nulls
        found.setdefault(partition, []).extend(flights_there)
    return found


@pytest.mark.parametrize("has_staging", [True, False])
def test_old_rows_come_first_and_the_report_names_both_files(has_staging):
    storage, markers = memory(has_staging=has_staging), Markers()
    old = small_file(storage, "small.parquet", flights(range(10)))
    report = filled(storage, [flights(range(100, 105)), flights(range(105, 108))], old, markers=markers)
    assert numbers(storage, report) == {"month=1": [*range(10), *range(100, 108)]}
    (file,) = report.files
    assert report.fills == (Fill(old, (file.path,)),)
    assert report.planned == ((file.path, 10_000),)
    assert file.rewritten_bytes == old.rewritten_bytes + old.bytes
    assert markers.ios == {file.path: "MERGE"}
    assert old.path in stored(storage)  # the commit removes it, nobody else


def test_a_file_is_read_once_however_many_batches_bring_rows_for_it(storage):
    old = small_file(storage, "small.parquet", flights(range(3)))
    reader = Reader(storage)
    batches = [flights([number]) for number in range(100, 120)]
    job = ticket(FLIGHTS, "month", row_group_bytes=64, buffer_bytes=128)
    report = write(job, batches, storage, planned=planned(old), read=reader)
    assert reader.asked == [old.path]
    assert report.rows == 20


def test_a_small_file_that_is_gone_costs_its_new_rows_nothing(storage):
    old = small_file(storage, "small.parquet", flights(range(3)))
    anyio.run(storage.delete, [old.path])
    report = filled(storage, [flights([100])], old)
    assert numbers(storage, report) == {"month=1": [100]}
    assert report.fills == ()
    assert report.files[0].rewritten_bytes == 0
    assert report.planned == ((report.files[0].path, 10_000 - old.bytes),)


def test_storage_that_does_not_answer_fails_the_attempt(storage):
    def read(path: str) -> Future[bytes]:
        answer: Future[bytes] = Future()
        answer.set_exception(Unavailable(f"{path}: no answer"))
        return answer

    old = small_file(storage, "small.parquet", flights(range(3)))
    with pytest.raises(Unavailable):
        write(ticket(FLIGHTS, "month"), [flights([100])], storage, planned=planned(old), read=read)


@pytest.mark.parametrize("damage", ["no Parquet", "other rows"])
def test_a_damaged_small_file_is_named_and_left_alone(storage, damage):
    old = small_file(storage, "small.parquet", flights(range(3)))
    if damage == "no Parquet":
        anyio.run(storage.put, old.path, b"PAR1 and no more")
    else:
        old = DataFile(old.partition, old.name, old.rows + 1, old.bytes)
    with pytest.raises(CorruptObject, match=r"month=1/small\.parquet.*sizing=None"):
        filled(storage, [flights([100])], old)
    assert old.path in stored(storage)


def test_two_planned_files_of_one_partition_are_refused(storage):
    files = [small_file(storage, name, flights([1])) for name in ("a.parquet", "b.parquet")]
    with pytest.raises(InvalidRequest, match="'month=1' has two planned files"):
        filled(storage, [], *files)


def test_old_rows_that_do_not_fit_into_one_file_are_told_in_order(storage):
    """As where a file was compressed much better than it is now."""
    old = small_file(storage, "small.parquet", flights(range(2000)), row_group_rows=2000)
    report = filled(storage, [flights([5000])], old, max_file_bytes=4_000, row_group_bytes=1_000, compression="none")
    (fill,) = report.fills
    assert len(fill.paths) > 2
    assert numbers(storage, report) == {"month=1": [*range(2000), 5000]}
    rows = {file.path: file.rows for file in report.files}
    assert sum(rows[path] for path in fill.paths[:-1]) < old.rows <= sum(rows[path] for path in fill.paths)
    assert sum(file.rewritten_bytes for file in report.files) == old.rewritten_bytes + old.bytes
    assert report.planned == ((fill.paths[0], 10_000),), "the first part stands for the file that was planned"


def numbered(months: Sequence[int]) -> pa.RecordBatch:
    rows = [{"flight": n, "origin": "JFK", "month": month} for n, month in enumerate(months)]
    return pa.RecordBatch.from_pylist(rows, schema=FLIGHTS)


@given(
    st.lists(st.lists(st.integers(1, 4), max_size=30), max_size=6),
    st.sets(st.integers(1, 4)),
    st.integers(200, 3000),
    st.integers(1, 3),
)
def test_every_row_is_written_once_whatever_is_filled(
    batches: Sequence[Sequence[int]], small: set[int], limit: int, open_files: int
):
    storage = memory(has_staging=False)
    fills = {
        f"month={month}": small_file(
            storage,
            f"old{month}.parquet",
            pa.RecordBatch.from_pylist(
                [{"flight": 1000 * month + n, "origin": "JFK", "month": month} for n in range(5)], schema=FLIGHTS
            ),
        )
        for month in small
    }
    report = filled(
        storage,
        [numbered(months) for months in batches],
        *fills.values(),
        max_file_bytes=limit,
        row_group_bytes=limit // 2,
        buffer_bytes=limit * 2,
        open_file_count=open_files,
    )
    expected: dict[str, list[int]] = {}
    for n, month in ((n, month) for months in batches for n, month in enumerate(months)):
        partition = f"month={month}"
        if partition not in expected:
            expected[partition] = [1000 * month + old for old in range(5)] if partition in fills else []
        expected[partition].append(n)
    assert numbers(storage, report) == expected
    assert {fill.old.partition for fill in report.fills} == expected.keys() & fills.keys()
