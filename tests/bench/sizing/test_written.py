from dataclasses import replace

import pytest

from tallymark.bench.sizing.written.answer import WrittenRow, WrittenSection, error_p95
from tallymark.bench.sizing.written.case import case
from tallymark.bench.sizing.written.folder import Folder, Landed, sizes_of
from tallymark.bench.sizing.written.report import sizes
from tallymark.bench.sizing.written.source import Load
from tallymark.bench.writes.order import PLAN_ERROR, Done, FileSizes, Order
from tallymark.bench.writes.process_tree import Spent


def put(folder, name, size):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    return path


def test_a_folder_keeps_what_was_ever_new_and_no_bookkeeping(tmp_path):
    folder = Folder(tmp_path)
    small = put(tmp_path, "p=1/a.parquet", 10)
    put(tmp_path, ".hoodie/.temp/b.parquet", 99)
    put(tmp_path, "p=1/.hoodie_partition_metadata.parquet", 99)
    put(tmp_path, "_temporary/c.parquet", 99)
    folder.look()
    small.unlink()
    put(tmp_path, "p=1/d.parquet", 25)
    folder.look()
    assert folder.landed == [Landed(1, "p=1", 10), Landed(2, "p=1", 25)]


def test_sizes_are_those_of_the_files_that_a_reader_names_by_their_urls(tmp_path):
    path = put(tmp_path, "p=a b/a.parquet", 10)
    assert sizes_of([path.as_uri()]) == [(str(path.parent), 10)]


def test_an_order_says_what_sizes_are_wanted_and_comes_back_the_same():
    sizes = FileSizes(policy="hudi", max_file_bytes=100, small_file_bytes=80)
    order = Order(source="file:///s", target="/t", mode="append", partition_by=("p",), sizes=sizes)
    assert Order.decode(order.encode()) == order


@pytest.mark.parametrize("name", ["appends", "iceberg", "drift"])
def test_each_case_has_some_rows_at_any_scale_and_a_small_limit_below_the_maximum(name):
    for scale in (0.001, 1.0):
        found = case(name, scale)
        assert all(min(load.rows) > 0 for load in found.loads)
        assert found.small_file_bytes < found.max_file_bytes


def test_a_load_shares_every_partition_among_all_tasks(tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    load = Load(rows=(30, 9), pieces=2, tasks=3)
    load.write(tmp_path / "source", seed=1)
    tables = [pq.read_table(path) for path in sorted((tmp_path / "source").iterdir())]
    assert [table.column("p").to_pylist() for table in tables] == [[0] * 10 + [1] * 3] * 3
    assert len({text for table in tables for text in table.column("text").to_pylist()}) == 39
    assert {len(text) for text in tables[0].column("text").to_pylist()} == {20}


LANDED = (
    *[Landed(1, "p=1", size) for size in (1, 1)],
    *[Landed(3, "p=1", size) for size in (100, 90, 20)],
    Landed(3, "p=2", 5),
)


def test_the_error_leaves_out_the_first_commits_and_the_smallest_file_of_each_partition():
    assert error_p95(LANDED, 100) == pytest.approx(0.1)
    assert error_p95(LANDED[:2], 100) is None


def test_how_far_files_are_off_their_plan_is_told_of_the_worst_commit_from_the_third_on():
    errors = (0.9, 0.8, 0.02, None, 0.05)
    done = tuple(
        Done(
            wall_s=1,
            spent=Spent(driver_s=0, jvm_s=0, python_s=0, forks_s=0),
            figures={} if e is None else {PLAN_ERROR: e},
        )
        for e in errors
    )
    row = WrittenRow(side="balanced", title="A side", done=done, rows=3, files=(), landed=LANDED)
    section = WrittenSection(case="drift", label="", max_file_bytes=100, small_file_bytes=80, rows=(row,), absent={})
    assert section.plan_error_p95(row) == 0.05
    assert section.plan_error_p95(replace(row, done=done[:2])) is None


def test_bytes_written_are_held_against_those_that_are_left():
    landed = (*LANDED, Landed(4, "", 43))
    left = (("p=1", 100), ("p=2", 30))
    row = WrittenRow(side="plain", title="A side", done=(), rows=3, files=left, landed=landed)
    section = WrittenSection(
        case="drift", label="some", max_file_bytes=100, small_file_bytes=80, rows=(row,), absent={"B": "no jar"}
    )
    assert row.written_over_left == pytest.approx(260 / 130)
    assert (section.minimum(row), section.small_share(row)) == (2, 0.5)
    assert sizes(section).row_count == 1
    assert section.document()["sides"][0]["written_over_left"] == pytest.approx(2)
