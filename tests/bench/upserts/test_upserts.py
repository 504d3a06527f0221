import json
from dataclasses import replace

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from tallymark.bench.__main__ import main
from tallymark.bench.upserts.case import FILES, case, growth, uuids
from tallymark.bench.upserts.memory import tasks_memory
from tallymark.bench.upserts.question import shown
from tallymark.bench.writes.order import Done
from tallymark.bench.writes.process_tree import Spent
from tests.support.jars import java


def run(*arguments):
    return CliRunner().invoke(main, ["upserts", *(str(argument) for argument in arguments)])


def done(cpu_s, **figures):
    spent = Spent(driver_s=cpu_s, jvm_s=0.0, python_s=0.0, forks_s=0.0)
    return (Done(wall_s=cpu_s, spent=spent, figures=figures),)


def test_engine_and_floor_are_measured_and_nothing_remains(tmp_path):
    (tmp_path / "store").mkdir()
    saved = tmp_path / "a.json"
    few = ("--rows", 1000, "--rounds", 1, "--warm-up", 0, "--case", "C", "--no-memory", "--no-growth")
    result = run(*few, "--side", "engine", "--side", "floor", "--folder", tmp_path / "store", "--json", saved)
    assert (result.exit_code, result.stderr) == (0, "")
    assert list((tmp_path / "store").iterdir()) == []
    times, taken, phases = json.loads(saved.read_text())["tables"]
    assert ([row["side"] for row in times["rows"]], times["absent"]) == (["engine", "floor"], {})
    assert min(row["written_bytes"] for row in taken["rows"]) > 0
    assert [row["title"] for row in phases["rows"] if row["write_s"]] == [
        "upsert",
        "one row",
        "append",
        "append: one row",
    ]


@pytest.mark.slow  # a table of 400 files
def test_a_larger_table_is_measured_beside_a_small_one(tmp_path):
    saved = tmp_path / "a.json"
    few = ("--rows", 1000, "--rounds", 1, "--warm-up", 0, "--case", "B", "--side", "engine", "--no-memory")
    assert run(*few, "--json", saved).exit_code == 0
    rows = json.loads(saved.read_text())["tables"][-1]["rows"]
    assert [row["title"] for row in rows] == ["100 rows in 4 files", "10,000 rows in 400 files"]
    assert rows[1]["of_smaller"]["value"] > 0


@pytest.mark.slow  # a process for each task
def test_tasks_are_measured_in_processes_of_their_own(tmp_path):
    rows = tasks_memory(tmp_path, 1000, shares=(0.5,))
    assert [row.title for row in rows] == ["keys task, 50%", "lookup task, 50%", "write task, 50%"]
    assert all(row.peak_bytes > row.before_bytes > 0 for row in rows)


@pytest.mark.release  # starts Spark, for figures that no promise rests on
@pytest.mark.spark
def test_ours_is_measured_beside_the_floor(tmp_path):
    java()
    saved = tmp_path / "a.json"
    few = ("--rows", 1000, "--rounds", 1, "--warm-up", 0, "--case", "C", "--no-memory", "--no-growth")
    result = run(*few, "--side", "ours", "--side", "floor", "--json", saved)
    assert (result.exit_code, result.stderr) == (0, "")
    times = json.loads(saved.read_text())["tables"][0]
    assert ([row["side"] for row in times["rows"]], times["absent"]) == (["ours", "floor"], {})
    assert times["rows"][0]["is_in_bar"] is not None


def test_bars_are_net_of_one_row_and_by_the_floor_and_the_append_of_the_same_round():
    found = {
        "floor": done(2.0),
        "engine": done(7.0, lookup_s=1.0),
        "engine: one row": done(1.0),
        "engine: append": done(2.0),
        "engine: append: one row": done(1.0),
        "ours": done(9.0),
        "ours: one row": done(1.0),
        "ours: append": done(3.0),
        "ours: append: one row": done(1.0),
        "delta": done(42.0),
        "delta: one row": done(2.0),
        "hudi": done(20.0),
    }
    times, *_ = shown(case("C", 1000), found, {})
    shares = {row.side: (row.net_s, row.of_bar and round(row.of_bar.value, 3), row.is_in_bar) for row in times.rows}
    assert shares == {
        "engine": (6.0, round(6 / (1.3 * 4), 3), "no"),
        "ours": (8.0, round(8 / (1.3 * 4), 3), "no"),
        "delta": (40.0, round(8 / (0.4 * 40), 3), "yes"),
        "hudi": (20.0, round(8 / (0.25 * 20), 3), "no"),
        "floor": (2.0, None, None),
    }


@pytest.mark.parametrize(("name", "new"), [("A", 0), ("B", 0), ("C", 90)])
def test_a_batch_has_new_keys_and_such_as_the_table_has(tmp_path, name, new):
    case(name, 1000).write(tmp_path)
    table, batch = (pq.read_table(tmp_path / folder) for folder in ("table", "batch"))
    assert (table.num_rows, table.num_columns, len(list((tmp_path / "table").iterdir()))) == (1000, 7, FILES)
    keys = pc.unique(batch["id"])
    assert len(keys) == batch.num_rows == case(name, 1000).batch
    assert len({*keys.to_pylist()} - {*table["id"].to_pylist()}) == new
    assert pc.min(batch["at"]).as_py() > pc.max(table["at"]).as_py()


def test_a_table_that_grows_has_more_files_of_one_size_and_the_same_batch():
    small, large = growth(10_000)
    assert replace(small, rows=0, files=0) == replace(large, rows=0, files=0)
    assert (large.rows // small.rows, small.rows // small.files) == (100, large.rows // large.files)


def test_keys_are_uuids():
    assert [len(each) for each in uuids(1, seed=0)[0].as_py().split("-")] == [8, 4, 4, 4, 12]
