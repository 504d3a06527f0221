import json

import pytest
from click.testing import CliRunner

from tallymark.bench.__main__ import main
from tallymark.bench.sizing.fill import KINDS, measure_fills
from tallymark.bench.sizing.written import SIDES, Asked, error_p95, written
from tallymark.bench.sizing.written_case import case
from tests.support.jars import java


def run(*arguments):
    return CliRunner().invoke(main, ["sizing", *(str(argument) for argument in arguments)])


def test_plans_keep_to_the_bars_and_come_as_tables(tmp_path):
    saved = tmp_path / "a.json"
    result = run("--plans-only", "--quick", "--json", saved, "--svg", tmp_path / "a.svg")
    assert (result.exit_code, result.stderr) == (0, "")
    examples, frontier, curve, *plans, speeds = json.loads(saved.read_text())["tables"]
    assert [row["is_as_published"] for row in examples["rows"]] == [False, True]
    assert {row["is_in_bar"] for row in frontier["rows"]} >= {True, None}
    assert {row["kind"] for row in curve["rows"]} == {"balanced", "hudi", "no sizing", "exact solver"}
    assert len(plans) == 8
    assert [row["partitions"] for row in speeds["rows"]] == [500, 500]
    assert "exact solver" in (tmp_path / "a.svg").read_text()


def test_the_smallest_file_of_each_append_is_left_out_of_the_error():
    landed = [(1, "p=1", 5), (3, "p=1", 90), (3, "p=1", 10), (3, "p=2", 7)]
    assert error_p95(landed, 100) == pytest.approx(0.1)
    assert error_p95(landed[:1], 100) is None


@pytest.mark.parametrize("name", ["appends", "iceberg", "drift"])
def test_a_case_has_rows_of_every_partition_in_every_load(name):
    found = case(name, 0.01)
    assert all(min(load.rows) > 0 for load in found.loads)
    assert found.small_file_bytes < found.max_file_bytes


def test_a_fill_is_measured_in_a_process_of_its_own(tmp_path):
    [found] = measure_fills(tmp_path, kinds=KINDS[:1], share=0.01)
    assert found.new_bytes > found.old_bytes > 0
    assert found.peak_bytes >= found.before_bytes > 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
@pytest.mark.release  # minutes of Spark
def test_written_appends_are_seen_whole_by_every_side(tmp_path):
    java()
    sides = [side for side in SIDES if side.name != "hudi"]
    asked = Asked(cases=[case("drift", 0.01)], sides=sides, cores=1, pythons={}, parent=tmp_path)
    [table] = written(asked, lambda _: None)
    assert (len(table.rows), table.absent) == (4, {})
    assert {row.plan_error_p95 is None for row in table.rows} == {True, False}
    assert list(tmp_path.iterdir()) == []
