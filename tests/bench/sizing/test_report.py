import json
from io import StringIO
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from tallymark.bench.sizing import run
from tallymark.bench.sizing.answer import Frontier, SizingRow
from tallymark.bench.sizing.figures import Figures
from tallymark.bench.sizing.plot import draw
from tallymark.bench.sizing.report import show
from tests.bench.sizing.planners import one_file_ever

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def answer():
    """By a planner that knows one file a partition, and nothing of budgets."""
    return run.run(scale=0.02, times=3, planner=one_file_ever)


@pytest.fixture(scope="module")
def printed(answer):
    page = StringIO()
    show(Console(file=page, width=140, highlight=False, markup=False), answer)
    return [" ".join(line.split()) for line in page.getvalue().splitlines()]


def test_the_frontier_stands_beside_each_policy(printed):
    assert "4 appends x 1 partitions x 0.4 MB: files of a partition against bytes rewritten" in " ".join(printed)
    assert 'policy "balanced", budget 8 1 1 (1.00) 1.50 1.50 (1.00) yes 100%' in printed
    assert 'policy "balanced", budget 1 1 1 (1.00) 1.50 1.50 (1.00) 100%' in printed  # no bar is set for it
    assert "no sizing 4 4 (1.00) 0.00 0.00 (1.00) 100%" in printed


def point(budget, files, rewritten):
    found = Figures(
        files=files, partitions=1, minimum=1, small_files=0, rewritten=rewritten, error_p95=None, largest=1.0,
        histogram=(),
    )  # fmt: skip
    return SizingRow(side="balanced", title="any", figures=found, budget=budget)


def test_ten_percent_more_bytes_than_the_exact_solver_are_within_the_bar_and_more_are_not():
    frontier = Frontier(label="any", appends=200, partitions=1, rows=())
    assert frontier.is_in_bar(point(8.0, 12, 7.84))
    assert frontier.is_in_bar(point(8.0, 12, 8.8)) is False
    assert frontier.is_in_bar(point(8.0, 14, 7.9)) is False  # twelve files cost no more
    assert frontier.is_in_bar(point(64.0, 2, 55.62)) is None


def test_a_plan_that_is_not_the_published_one_is_said_to_be_another(printed):
    assert 'policy "hudi" none 450,000 no' not in printed  # it fills
    assert 'policy "hudi" 450,000 none no' in printed


def test_every_part_has_its_table(printed):
    text = "\n".join(printed)
    assert text.count("whole loads: ") == 4
    assert text.count("as it arrives: ") == 4
    assert "CPU time of a plan; bar: 2 s" in text


def test_the_document_has_the_exact_solver_beside_each_point(answer):
    document = json.loads(json.dumps(answer.document()))
    assert document["question"] == "sizing"
    [hudi] = [row for row in document["frontier"]["rows"] if row["side"] == "hudi"]
    assert hudi["exact"] == {"fewest": {"files": 1, "rewritten": 1.5}, "cheapest": {"files": 1, "rewritten": 1.5}}
    for section in document["at_once"] + document["streams"]:
        assert [row["side"] for row in section["rows"]] == ["balanced", "hudi", "plain"]
        for row in section["rows"]:
            assert sum(row["figures"]["histogram"]) == row["figures"]["files"]


def test_the_plot_has_the_curve_a_point_for_each_policy_and_bars(answer):
    root = ET.fromstring(draw(answer))
    assert len(root.findall(f"{SVG}polyline")) == 1
    assert len(root.findall(f"{SVG}circle")) == len(answer.frontier.rows) + 3  # and the legend's
    assert len(root.findall(f"{SVG}rect")) > 10
