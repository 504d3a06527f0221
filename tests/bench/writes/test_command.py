import json

import pytest
from click.testing import CliRunner

from tallymark.bench.__main__ import main
from tests.support.jars import java


def run(*arguments):
    return CliRunner().invoke(main, ["writes", *(str(argument) for argument in arguments)])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--case", "upsert"), "'upsert' is not one of"),
        (("--side", "nobody"), "'nobody' is not one of"),
        (("--python", "v1=/no/such/python"), "give SIDE=PATH"),
        (("--url", "/no/such/place"), "is not a directory of this machine; make it first"),
        (("--url", "memory:"), "no such store in common"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_measured(arguments, said):
    result = run(*arguments)
    assert result.exit_code != 0
    assert said in result.stderr


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Two sides on a disk, as small as it can be."""
    java()
    folder = tmp_path_factory.mktemp("writes")
    (folder / "store").mkdir()
    (folder / "store" / "mine").write_text("not the harness's")
    few = ("--scale", 0.001, "--rounds", 2, "--warm-up", 0, "--side", "ours", "--side", "v1")
    cases = ("--case", "append", "--case", "dynamic-overwrite", "--case", "small-files")
    files = ("--json", folder / "answer.json", "--svg", folder / "answer.svg")
    return run("--url", folder / "store", *few, *cases, *files), folder


@pytest.mark.release  # starts Spark, or a JVM with Hudi, for figures that no promise rests on
@pytest.mark.spark
def test_every_case_has_every_write_of_each_side(measured):
    result, folder = measured
    assert (result.exit_code, result.stderr) == (0, "")
    tables = json.loads((folder / "answer.json").read_text())["tables"][::3]
    assert [table["title"].partition(":")[0] for table in tables] == ["append", "dynamic overwrite", "small files"]
    for table in tables:
        assert [row["side"] for row in table["rows"]] == ["ours", "v1"]
        assert all(len(row["writes"]) == 2 for row in table["rows"])


@pytest.mark.release  # starts Spark, or a JVM with Hudi, for figures that no promise rests on
@pytest.mark.spark
def test_cpu_of_the_jvm_is_seen_on_both_sides_and_that_of_python_workers_on_ours(measured):
    _, folder = measured
    ours, theirs = json.loads((folder / "answer.json").read_text())["tables"][0]["rows"]
    spent = [write["spent"] for write in theirs["writes"]]
    assert sum(figures["jvm_s"] for figures in spent) > 0
    assert sum(figures["python_s"] for figures in spent) == 0
    assert sum(write["spent"]["python_s"] for write in ours["writes"]) > 0
    assert sum(figures["forks_s"] for figures in spent) == 0  # no chmod: what is compared is writing


@pytest.mark.release  # starts Spark, or a JVM with Hudi, for figures that no promise rests on
@pytest.mark.spark
def test_nothing_is_left_on_the_store_and_nothing_else_is_touched(measured):
    _, folder = measured
    assert [path.name for path in (folder / "store").iterdir()] == ["mine"]
