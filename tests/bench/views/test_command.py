import json
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from tallymark.bench.__main__ import main
from tallymark.bench.peers.delta_log import has_delta
from tallymark.bench.views.sides import STORES
from tests.support.spark import require_java


def run(*arguments):
    return CliRunner().invoke(main, ["views", *(str(argument) for argument in arguments)])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--side", "nobody"), "'nobody' is not one of"),
        (("--files", "1"), "1 is not in the range"),
        (("--seconds", "0"), "0.0 is not in the range"),
        (("--folder", "/no/such/place"), "does not exist"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_measured(arguments, said):
    result = run(*arguments)
    assert result.exit_code != 0
    assert said in result.stderr


def test_a_glance_gives_tables_figures_and_a_plot_and_leaves_nothing(tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "mine").write_text("not the harness's")
    files = ("--json", tmp_path / "answer.json", "--svg", tmp_path / "answer.svg")
    sides = ("--side", "ours", "--side", "delta", "--side", "listing")
    result = run("--quick", "--files", "1000", *sides, "--folder", tmp_path / "store", *files)
    assert (result.exit_code, result.stderr) == (0, "")
    assert [path.name for path in (tmp_path / "store").iterdir()] == ["mine"]
    document = json.loads((tmp_path / "answer.json").read_text())
    [section] = document["sections"]
    assert section["table"]["files"] == 1_000
    check_ours(section)
    check_listings(section)
    assert [*document["absent"]] == ([] if has_delta() else [*without_delta(document)])
    assert ET.parse(tmp_path / "answer.svg").getroot().tag == "{http://www.w3.org/2000/svg}svg"


def check_ours(section):
    rows = {row["side"]: row for row in section["rows"]}
    for store in STORES:
        held, served = rows[f"ours-{store}"], rows[f"ours-{store}-served"]
        assert served["look_ups"]["load"]["latency"]["count"] > 0
        for row in (held, served):
            assert row["look_ups"]["alone"]["count"] > 0
            assert [(sync["files"], len(sync["followed"])) for sync in row["syncs"]] == [(1, 2), (10, 2)]
    far, by_log = (rows[name]["opening"]["requests"] for name in ("ours-far", "ours-far-log"))
    assert "list" not in far
    assert far["get"] < by_log["get"]


def check_listings(section):
    disk, s3 = (row for row in section["rows"] if row["side"] in ("disk", "s3"))
    assert disk["look_ups"]["load"]["latency"]["count"] > 0
    assert s3["look_ups"]["alone"]["p50_s"] >= 0.03
    assert disk["syncs"] == s3["syncs"] == []


def without_delta(document):
    return [title for title in document["absent"] if title.startswith("deltalake")]


@pytest.mark.release  # starts Spark, or a JVM with Hudi, for figures that no promise rests on
@pytest.mark.spark
def test_hudis_timeline_server_takes_part_in_each_of_its_views_or_it_is_said_why_not(tmp_path):
    require_java()
    result = run("--quick", "--files", "200", "--side", "hudi", "--json", tmp_path / "answer.json")
    assert (result.exit_code, result.stderr) == (0, "")
    document = json.loads((tmp_path / "answer.json").read_text())
    [section] = document["sections"]
    assert len(section["rows"]) + len(document["absent"]) == 3
    for row in section["rows"]:
        assert row["look_ups"]["load"]["latency"]["count"] > 0
        assert all(sync["followed"] for sync in row["syncs"])
