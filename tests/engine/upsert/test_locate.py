"""Keys of a batch, stored by tasks, and where the table's files have them."""

import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import anyio
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallymark.backends.errors import Unavailable
from tallymark.backends.memory import MemoryBackend
from tallymark.engine.arrow.key_range import range_of
from tallymark.engine.errors import CorruptObject, InvalidRequest, Sealed
from tallymark.engine.tasks.changes import HASH
from tallymark.engine.tasks.merge import ROW
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.timeline.entry import Bounds, DataFile
from tallymark.engine.timeline.table_key import TableKey
from tallymark.engine.upsert import keys as keys_module
from tallymark.engine.upsert.keys import PLAIN_BYTES, KeyReport, key_task
from tallymark.engine.upsert.locate import END, GONE, Lookup, hit_counts, locate_task, may_hold
from tests.engine.tasks.scene import schema_of, ticket
from tests.support.examples import examples
from tests.support.faulty import FaultyBackend, lost_request

ORDERS = schema_of(id=pa.string(), line=pa.int32(), day=pa.string(), price=pa.float64())


def keyed(record_key: Sequence[str] = ("id",), **named: Any) -> WriteTicket:
    return replace(ticket(ORDERS, "day"), key=TableKey(record_key=tuple(record_key), unique_in="partition"), **named)


def orders(*rows: tuple[str, int, str]) -> pa.RecordBatch:
    found = [{"id": id_, "line": line, "day": day, "price": 1.5} for id_, line, day in rows]
    return pa.RecordBatch.from_pylist(found, schema=ORDERS)


class Store(FaultyBackend):
    def __init__(self) -> None:
        super().__init__(MemoryBackend())

    def file(self, rows: pa.RecordBatch, name: str = "a", *, group: int = 2, column: str = "id") -> DataFile:
        """A data file of one partition."""
        sink = io.BytesIO()
        pq.write_table(pa.Table.from_batches([rows]), sink, row_group_size=group)
        day = rows.column("day")[0].as_py()
        lower, upper = range_of(rows.column(column)) or (b"", None)
        found = DataFile(f"day={day}", name, rows.num_rows, len(sink.getvalue()), bounds=(Bounds(1, lower, upper),))
        anyio.run(self.put, found.path, sink.getvalue())
        return found

    def hits(self, job: WriteTicket, reports: Sequence[KeyReport], *files: DataFile, by_partition: bool = True) -> Any:
        segments = tuple(segment for report in reports for segment in report.segments)
        lookup = Lookup.decode(Lookup(files, segments, by_partition).encode())
        hits = list(locate_task(job, lookup, backend=self))
        assert {file.path for file in files} == hit_counts(hits).keys()
        found = [row for batch in hits for row in batch.to_pylist() if row[ROW] > END]
        return [tuple(value for name, value in row.items() if name != "day") for row in found]


STORED = orders(("a", 1, "x"), ("b", 1, "x"), ("c", 1, "x"), ("d", 1, "x"), ("e", 1, "x"))


def test_each_key_that_a_file_holds_is_found_with_its_row():
    store, job = Store(), keyed()
    report = key_task(job, [orders(("c", 9, "x"), ("z", 9, "x")), orders(("a", 9, "x"))], task=3, backend=store)
    assert (report.rows, report.task, report.checksum) == (3, 3, None)
    assert store.hits(job, [report], store.file(STORED)) == [("a", "day=x/a", 0), ("c", "day=x/a", 2)]


def test_keys_are_compared_within_their_partition_or_everywhere():
    store, job = Store(), keyed()
    files = store.file(STORED), store.file(orders(("c", 1, "y")), "b")
    report = key_task(job, [orders(("c", 9, "y"))], task=0, backend=store)
    assert store.hits(job, [report], *files) == [("c", "day=y/b", 0)]
    everywhere = [("c", "day=x/a", 2), ("c", "day=y/b", 0)]
    assert store.hits(job, [report], *files, by_partition=False) == everywhere


def test_a_key_of_several_columns_is_found_where_all_of_them_are_equal():
    store, job = Store(), keyed(["id", "line"])
    stored = store.file(orders(("a", 1, "x"), ("a", 2, "x"), ("b", 1, "x"), ("b", 2, "x")))
    report = key_task(job, [orders(("b", 1, "x"), ("a", 2, "x"), ("c", 1, "x"))], task=0, backend=store)
    assert store.hits(job, [report], stored) == [("a", 2, "day=x/a", 1), ("b", 1, "day=x/a", 2)]


def test_the_names_of_key_columns_may_have_dots():
    columns: dict[str, pa.DataType] = {"order.id": pa.string(), "order": pa.int32(), "day": pa.string()}
    schema = schema_of(**columns)
    key = TableKey(record_key=("order.id",), unique_in="partition")
    store, job = Store(), replace(ticket(schema, "day"), key=key)
    rows = pa.RecordBatch.from_pylist([{"order.id": id_, "order": 1, "day": "x"} for id_ in "abc"], schema=schema)
    stored = store.file(rows, column="order.id")
    report = key_task(job, [rows.slice(1, 1)], task=0, backend=store)
    assert store.hits(job, [report], stored) == [("b", "day=x/a", 1)]


def test_a_day_after_the_year_9999_is_found():
    schema = schema_of(born=pa.date32(), day=pa.string())
    store, job = Store(), replace(ticket(schema, "day"), key=TableKey(record_key=("born",), unique_in="partition"))
    born = pa.array([0, 3_000_000], pa.int32()).cast(pa.date32())
    rows = pa.RecordBatch.from_arrays([born, pa.array(["x", "x"])], schema=schema)
    report = key_task(job, [rows.slice(0, 1)], task=0, backend=store)
    assert [row for _, _, row in store.hits(job, [report], store.file(rows, column="born"))] == [0]


def test_only_the_key_columns_of_row_groups_in_the_range_are_read():
    store, job = Store(), keyed()
    wide = orders(*((f"{number:06}", 1, "x") for number in range(40_000)))
    file = store.file(wide, group=10_000)
    report = key_task(job, [orders(("025000", 9, "x"))], task=0, backend=store)
    store.calls.clear()
    assert store.hits(job, [report], file) == [("025000", "day=x/a", 25_000)]
    ranges = [call for call in store.calls if call.verb == "get_range"]
    assert len(ranges) <= 4
    assert not [call for call in store.calls if file.path in call.paths and call.verb == "get"]


def test_a_file_out_of_range_or_of_another_partition_is_no_candidate():
    store, job = Store(), keyed()
    [segment] = key_task(job, [orders(("c", 9, "x"))], task=0, backend=store).segments
    file = store.file(STORED)
    assert may_hold(file, segment, by_partition=True)
    assert not may_hold(replace(file, partition="day=y"), segment, by_partition=True)
    assert may_hold(replace(file, partition="day=y"), segment, by_partition=False)
    assert not may_hold(replace(file, bounds=(Bounds(1, b"d", b"e"),)), segment, by_partition=True)
    assert may_hold(replace(file, bounds=()), segment, by_partition=True), "nothing is known of it"
    assert may_hold(replace(file, bounds=(Bounds(1, b"a", None),)), segment, by_partition=True)


def test_many_keys_are_compared_in_pieces(monkeypatch):
    monkeypatch.setattr(keys_module, "SEGMENT_BYTES", 200)
    monkeypatch.setattr("tallymark.engine.upsert.locate.SEGMENT_BYTES", 200)
    store, job = Store(), keyed()
    batches = [
        orders(*((f"{number:03}", 1, "x") for number in range(start, start + 10))) for start in range(0, 100, 10)
    ]
    report = key_task(job, batches, task=0, backend=store)
    assert len(report.segments) > 3
    stored = store.file(orders(*((f"{number:03}", 1, "x") for number in range(0, 200, 7))))
    found = [row for _, _, row in store.hits(job, [report, report], stored)]
    assert found == list(range(15)), "also of keys that are in several segments"


def test_a_key_of_several_segments_is_found_once(monkeypatch):
    monkeypatch.setattr("tallymark.engine.upsert.locate.SEGMENT_BYTES", 1)
    store, job = Store(), keyed()
    reports = [key_task(job, [orders(("d", 9, "x"), ("a", 9, "x"))], task=task, backend=store) for task in range(2)]
    assert store.hits(job, reports, store.file(STORED)) == [("a", "day=x/a", 0), ("d", "day=x/a", 3)]
    none = [key_task(job, [orders(("aa", 9, "x"))], task=task, backend=store) for task in range(2)]
    assert store.hits(job, none, store.file(STORED)) == []


def test_a_batch_of_many_keys_makes_several_segments(monkeypatch):
    monkeypatch.setattr(keys_module, "SEGMENT_BYTES", 1000)
    batch = orders(*((f"{number:04}", 1, "x") for number in range(1000)))
    report = key_task(keyed(), [batch], task=0, backend=Store())
    assert report.rows == 1000
    assert max(keys.rows for segment in report.segments for keys in segment.partitions) < 200


def test_keys_of_a_job_that_is_over_are_not_taken_for_a_missing_file():
    store, job = Store(), keyed()
    report = key_task(job, [orders(("c", 9, "x"))], task=0, backend=store)
    anyio.run(store.delete, [report.segments[0].path])
    with pytest.raises(Sealed, match="was committed or rolled back since; its keys in"):
        store.hits(job, [report], store.file(STORED))


def test_sums_of_hashes_do_not_depend_on_how_rows_are_divided():
    job, hashes = keyed(), [(1 << 63) - 1, -(1 << 63), (1 << 63) - 1]
    batch = orders(("a", 1, "x"), ("b", 1, "y"), ("c", 1, "x")).append_column(HASH, pa.array(hashes))
    divided = [batch.slice(number, 1) for number in range(3)]
    [whole, parts] = [key_task(job, batches, task=0, backend=Store()) for batches in ([batch], divided)]
    assert whole.checksum == parts.checksum == sum(hashes) % (1 << 64)
    assert KeyReport.decode(whole.encode()) == whole


def test_hashes_and_sizes_of_rows_are_added_up_by_task_and_partition():
    rows = orders(("a", 1, "x"), ("b", 1, "y"), ("c", 1, "x"))
    batch = rows.append_column(HASH, pa.array([1, 2, 1 << 39])).append_column(PLAIN_BYTES, pa.array([10, 20, 30]))
    report = key_task(keyed(), [batch], task=0, backend=Store())
    [segment] = report.segments
    assert report.checksum == (1 << 39) + 3
    sums = [(keys.partition, keys.rows, keys.plain_bytes, keys.range) for keys in segment.partitions]
    assert sums == [("day=x", 2, 40, (b"a", b"c")), ("day=y", 1, 20, (b"b", b"b"))]
    assert KeyReport.decode(report.encode()) == report


def test_a_file_that_is_missing_is_a_hit_of_its_own():
    store, job = Store(), keyed()
    file = store.file(STORED)
    anyio.run(store.delete, [file.path])
    report = key_task(job, [orders(("c", 9, "x"))], task=0, backend=store)
    assert store.hits(job, [report], file) == [(None, "day=x/a", GONE)]


def test_a_file_that_goes_missing_during_its_search_is_gone(monkeypatch):
    monkeypatch.setattr("tallymark.engine.upsert.locate.SEGMENT_BYTES", 1)
    store, job = Store(), keyed()
    file = store.file(STORED)
    report = key_task(job, [STORED], task=0, backend=store)
    search = locate_task(job, Lookup((file,), report.segments), backend=store)
    first = next(search)
    anyio.run(store.delete, [file.path])
    assert first.column(ROW)[0].as_py() == 0
    assert hit_counts([first, *search]) == {file.path: GONE}


def test_a_file_of_other_rows_than_its_commit_recorded_is_damage():
    store, job = Store(), keyed()
    file = replace(store.file(STORED), rows=6)
    report = key_task(job, [orders(("c", 9, "x"))], task=0, backend=store)
    with pytest.raises(CorruptObject, match="day=x/a holds 5 rows, and was committed with 6"):
        store.hits(job, [report], file)


def test_a_read_without_an_answer_says_nothing_of_the_file():
    store, job = Store(), keyed()
    file = store.file(STORED)
    report = key_task(job, [STORED], task=0, backend=store)
    silent = FaultyBackend(store, lost_request("get_range"))
    with pytest.raises(Unavailable, match="the request was lost"):
        list(locate_task(job, Lookup((file,), report.segments), backend=silent))


def test_a_predicate_reads_its_columns_of_row_groups_that_may_match():
    store, rows = Store(), orders(*((f"o{number:02}", number, "x") for number in range(8)))
    file = store.file(rows)
    hits = list(locate_task(keyed(where="id > 'o04' AND line <> 6"), Lookup((file,)), backend=store))
    assert [row for batch in hits for row in batch.column(ROW).to_pylist()] == [5, 7, END - 2]
    reads = len(store.paths("get_range"))
    assert (reads, hit_counts(hits)) == (1 + 2, {file.path: 2}), "the footer, and two of four row groups"
    for wrong in ([*hits, *hits], hits[1:], hits[:-1]):
        with pytest.raises(InvalidRequest, match="hits in day=x/a are incomplete, or there twice"):
            hit_counts(wrong)
    [missing] = locate_task(keyed(where="line = 1"), Lookup((replace(file, name="b"),)), backend=store)
    assert hit_counts([missing]) == {"day=x/b": GONE}


@pytest.mark.parametrize(
    ("job", "batch", "error"),
    [
        (ticket(ORDERS, "day"), STORED, "has no record key, by which rows could be found"),
        (keyed(), STORED.drop_columns(["id"]), "column 'id' .* is missing"),
        (keyed(), STORED.drop_columns(["day"]), "column 'day' .* is missing"),
        (keyed(), STORED.append_column("id", STORED.column("id")), "column 'id' .* stands 2 times in a batch"),
        (keyed(), STORED.set_column(0, "id", pa.array(range(5))), "column 'id' is int64 in a batch and string"),
    ],
    ids=["no key", "no key column", "no partition column", "two key columns", "another type"],
)
def test_keys_that_do_not_fit_the_table_are_refused(job, batch, error):
    with pytest.raises(InvalidRequest, match=error):
        key_task(job, [batch], task=0, backend=Store())


NUMBERS = st.lists(st.integers(-50, 50), max_size=30)


@settings(max_examples=examples(50))
@given(NUMBERS, NUMBERS, st.integers(1, 5), st.booleans())
def test_the_hits_are_those_of_a_search_through_all_rows(stored, sought, group, two_columns):
    store, job = Store(), keyed(["line", "id"] if two_columns else ["line"])
    rows = orders(*((str(number % 3), number, "x") for number in stored)) if stored else orders(("", 99, "x"))
    file = store.file(rows, group=group, column="line")
    batches = [orders(*((str(number % 3), number, "x") for number in sought))] if sought else []
    report = key_task(job, batches, task=0, backend=store)
    found = [hit[-1] for hit in store.hits(job, [report], file)]
    assert sorted(found) == [row for row, number in enumerate(stored) if number in sought]
