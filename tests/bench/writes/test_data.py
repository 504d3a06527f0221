import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from tallymark.bench.writes.case import case
from tallymark.bench.writes.data import PARTITION_BY, Data


def files(folder):
    return [pq.read_table(path) for path in sorted(folder.iterdir())]


def days(table):
    return set(table.column("date").to_pylist())


def test_flat_rows_are_as_many_as_asked_for_and_no_number_comes_twice(tmp_path):
    Data(rows=1001, tasks=4).write(tmp_path / "source")
    table = ds.dataset(tmp_path / "source").to_table()
    assert len(list((tmp_path / "source").iterdir())) == 4
    assert table.num_rows == 1001
    assert len(set(table.column("id").to_pylist())) == 1001


def test_a_partition_is_in_one_file_and_every_partition_has_rows(tmp_path):
    Data(rows=600, tasks=4, partitions=30).write(tmp_path / "source")
    found = [days(table) for table in files(tmp_path / "source")]
    assert sum(map(len, found)) == len(set.union(*found)) == 30
    assert sum(table.num_rows for table in files(tmp_path / "source")) == 600
    assert files(tmp_path / "source")[0].column_names == [*PARTITION_BY, "data"]


def test_small_files_are_one_for_each_task_and_partition(tmp_path):
    small = case("small-files", 0.01).data
    small.write(tmp_path / "source")
    assert (small.tasks, small.partitions) == (10, 16)
    assert all(len(days(table)) == 16 for table in files(tmp_path / "source"))
    assert sum(table.num_rows for table in files(tmp_path / "source")) == small.rows


def test_the_same_rows_are_drawn_each_time(tmp_path):
    data = Data(rows=100, tasks=2, partitions=5)
    data.write(tmp_path / "a")
    data.write(tmp_path / "b")
    assert ds.dataset(tmp_path / "a").to_table() == ds.dataset(tmp_path / "b").to_table()


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("append", "append: 4,000,000 rows"),
        ("dynamic-overwrite", "dynamic overwrite: 1,500,000 rows, 300 partitions"),
        ("static-overwrite", "static overwrite: 1,500,000 rows, 300 partitions"),
        ("small-files", "small files: 66,000 rows, 165 partitions, 16,500 files"),
    ],
)
def test_at_scale_1_the_cases_are_those_that_were_published(name, label):
    assert case(name, 1.0).label == label
