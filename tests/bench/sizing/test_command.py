import json
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from tallymark.bench.__main__ import main
from tallymark.bench.sizing.written.case import case
from tallymark.bench.sizing.written.fill import KINDS, measure_fills
from tallymark.bench.sizing.written.run import Asked
from tallymark.bench.sizing.written.run import run as write
from tallymark.bench.sizing.written.sides import SIDES
from tests.support.spark import require_java


def run(*arguments):
    return CliRunner().invoke(main, ["sizing", *(str(argument) for argument in arguments)])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--case", "upsert"), "'upsert' is not one of"),
        (("--side", "nobody"), "'nobody' is not one of"),
        (("--python", "hudi=/no/such/python"), "give SIDE=PATH"),
        (("--folder", "/no/such/place"), "does not exist"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_measured(arguments, said):
    result = run(*arguments)
    assert result.exit_code != 0
    assert said in result.stderr


def test_plans_alone_need_no_spark_and_give_tables_figures_and_a_plot(tmp_path):
    files = ("--json", tmp_path / "answer.json", "--svg", tmp_path / "answer.svg")
    result = run("--plans-only", "--quick", *files)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "the published example" in result.stdout
    document = json.loads((tmp_path / "answer.json").read_text())
    assert [example["is_as_published"] for example in document["examples"]] == [False, True]
    assert (document["written"], document["fills"]) == ([], [])
    assert ET.parse(tmp_path / "answer.svg").getroot().tag == "{http://www.w3.org/2000/svg}svg"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Two sides on a disk, as small as it can be, without the memory of a fill."""
    require_java()
    folder = tmp_path_factory.mktemp("sizing")
    (folder / "store").mkdir()
    (folder / "store" / "mine").write_text("not the harness's")
    sides = tuple(side for side in SIDES if side.name in ("balanced", "plain"))
    drift = case("drift", 0.01)
    asked = Asked(
        cases=(replace(drift, loads=drift.loads[:3]),), sides=sides, cores=2, pythons={}, parent=folder / "store"
    )
    return write(asked), folder / "store"


@pytest.mark.release  # starts Spark, or a JVM with Hudi, for figures that no promise rests on
@pytest.mark.spark
def test_every_side_leaves_every_row_and_sized_files_are_fewer(written):
    ([section], _) = written
    ours, plain = section.rows
    assert (ours.side, plain.side, dict(section.absent)) == ("balanced", "plain", {})
    assert ours.rows == plain.rows
    assert len(ours.files) < len(plain.files) == 3 * 4 * 2
    assert (plain.written_over_left, len(plain.done)) == (1.0, 3)
    assert section.largest(ours) <= 1.25


@pytest.mark.release  # starts Spark, or a JVM with Hudi, for figures that no promise rests on
@pytest.mark.spark
def test_memory_of_tasks_is_told_of_ours_and_that_of_the_jvm_of_all(written):
    ([section], _) = written
    ours, plain = section.rows
    assert ours.figure("peak_python_bytes") > 0
    assert plain.figure("peak_python_bytes") == 0
    assert min(row.figure("peak_jvm_bytes") for row in section.rows) > 0


@pytest.mark.release  # starts Spark, or a JVM with Hudi, for figures that no promise rests on
@pytest.mark.spark
def test_nothing_is_left_where_was_written_and_nothing_else_is_touched(written):
    _, folder = written
    assert [path.name for path in folder.iterdir()] == ["mine"]


def test_a_fill_is_measured_in_a_process_of_its_own_and_leaves_nothing(tmp_path):
    [found] = measure_fills(tmp_path, kinds=KINDS[:1], share=0.005)
    assert (found.rows, found.new_bytes > found.old_bytes) == (KINDS[0].kind, True)
    assert found.peak_bytes >= found.before_bytes > 0
    assert list(tmp_path.iterdir()) == []
