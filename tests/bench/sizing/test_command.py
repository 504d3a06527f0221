import json
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from tallymark.bench.__main__ import main


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
