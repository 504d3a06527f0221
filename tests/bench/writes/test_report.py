import json
from dataclasses import replace
from io import StringIO
from xml.etree import ElementTree as ET

from rich.console import Console

from tallymark.bench.writes.plot import draw
from tallymark.bench.writes.published import PUBLISHED
from tallymark.bench.writes.report import show
from tests.bench.writes.answers import answer, row, section

OURS = row(
    "ours", "Tallymark", 1.0, 2.0, 3.0, files=300, commit_s=0.25, markers=300, marker_objects=7, marker_wait_s=0.5
)
THEIRS = row("v1", "FileOutputCommitter v1", 2.0, 4.0, 12.0)


def printed(*sections):
    page = StringIO()
    show(Console(file=page, width=140, highlight=False, markup=False), answer(*sections))
    return page.getvalue()


def test_the_ratio_is_the_median_of_those_within_a_round():
    [line] = [line for line in printed(section(OURS, THEIRS)).splitlines() if line.startswith("  FileOutput")]
    words = " ".join(line.split())
    assert words == "FileOutputCommitter v1 4.00 s 0.50 (0.25 to 0.50) 8.00 s 0.50 (0.25 to 0.50) 6.00 s 2.00 s"


def test_what_a_writer_says_of_itself_who_is_absent_and_what_was_published_stand_below():
    text = printed(section(OURS, THEIRS, Hudi="no bundle for this Spark"))
    assert "Tallymark: files 300, commit, after the last task 250 ms" in text
    assert "without Hudi: no bundle for this Spark" in text
    assert "published, not measured here: Qubole" in text


def test_markers_stand_beside_those_that_others_have_published():
    text = printed(replace(section(OURS, THEIRS), published=PUBLISHED["small-files"]))
    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert "Tallymark 300 500 ms 7" in rows
    [batched] = [row for row in rows if "165,000 batched markers" in row]
    assert batched.endswith("20 about 3 s")
    assert "published, not measured here: Apache Hudi, blog on marker mechanism: the whole job" in text


def test_requests_are_those_of_the_whole_write_and_for_each_of_the_files_that_were_due():
    text = printed(
        section(row("ours", "Tallymark", 1.0, 1.0, 1.0, requests_put=310, requests_list=8, requests_get=12), THEIRS)
    )
    assert "Tallymark 310 0 12 0 8 0 1.1" in [" ".join(line.split()) for line in text.splitlines()]


def test_a_run_without_ours_has_times_and_no_ratios():
    text = printed(section(THEIRS))
    assert "4.00 s" in text
    assert "(0." not in text


def test_the_document_keeps_every_write():
    document = json.loads(json.dumps(answer(section(OURS, THEIRS)).document()))
    [found] = document["sections"]
    ours, theirs = found["sides"]
    assert document["question"] == "writes"
    assert [write["wall_s"] for write in theirs["writes"]] == [2.0, 4.0, 12.0]
    assert theirs["ours_over_it"]["wall"] == {"value": 0.5, "low": 0.25, "high": 0.5}
    assert "ours_over_it" not in ours


def test_the_plot_has_a_bar_and_its_ticks_for_each_reading_of_each_side():
    root = ET.fromstring(draw(answer(section(OURS, THEIRS), section(OURS))))
    assert len(root.findall("{http://www.w3.org/2000/svg}rect")) == 1 + 2 * 3
    assert len(root.findall("{http://www.w3.org/2000/svg}line")) == 2 * 9
