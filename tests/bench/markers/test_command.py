import json
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner

from tallymark.bench.__main__ import main
from tallymark.bench.markers import run as markers
from tallymark.bench.markers.effort import Effort
from tallymark.bench.markers.paced import READINGS
from tests.support.spark import require_java

TINY = Effort(
    rounds=1,
    seconds=2,
    warm_up_s=0.1,
    first_s=0.1,
    filling=(10, 50),
    published=(30,),
    intervals_ms=(5,),
    threads=(),
    callers=8,
    few=4,
    rate=100,
)


def run(*arguments):
    return CliRunner().invoke(main, ["markers", *(str(argument) for argument in arguments)])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--part", "nothing"), "'nothing' is not one of"),
        (("--markers", "0"), "0 is not in the range"),
        (("--latency-ms", "-1"), "-1.0 is not in the range"),
        (("--store", "memory:"), "memory: is a store of one process"),
        (("--store", "/no/such/place"), "/no/such/place is no directory"),
    ],
)
def test_what_cannot_be_done_is_refused_before_anything_is_measured(arguments, said):
    result = run(*arguments)
    assert result.exit_code != 0
    assert said in result.stderr


def test_sides_take_turns_and_without_a_java_hudis_is_left_out_with_the_reason(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/no/such/java")
    (tmp_path / "mine").write_text("not the harness's")
    answer = markers.run(markers.Asked(parts=["beside"], effort=TINY, store=str(tmp_path)))
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert "/no/such/java" in answer.absent["Hudi's timeline server"]
    few, many = answer.beside.loads
    assert [row.side for row in few.rows] == [row.side for row in many.rows] == ["ours", "ours-inside", "ours-direct"]
    assert all(row.acks.latency.count > 0 for row in (*few.rows, *many.rows))
    assert [(row.side, row.job.acks.count) for row in answer.beside.jobs] == [
        ("ours", 10),
        ("ours-inside", 10),
        ("ours", 50),
        ("ours-inside", 50),
    ]
    ours = answer.beside.jobs[2].job
    assert (ours.acks.puts or 0) >= ours.left.segments
    assert 1 <= (ours.acks.amplification or 0) <= 4
    assert ours.left.objects == ours.left.segments + 2


def test_a_glance_at_the_published_table_gives_figures_and_a_plot(tmp_path):
    files = ("--json", tmp_path / "answer.json", "--svg", tmp_path / "answer.svg")
    result = run("--quick", "--part", "published", "--markers", 300, "--latency-ms", 5, "--rate-limit", 1000, *files)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "5 ms a request, 1,000 puts/s" in result.stdout
    document = json.loads((tmp_path / "answer.json").read_text())
    jobs = {(row["side"], row["job"]["acks"]["count"]): row["job"] for row in document["published"]}
    assert jobs.keys() == {(side, count) for side in ("ours", "ours-direct") for count in (200, 300)}
    direct = jobs["ours-direct", 300]
    assert (direct["left"]["objects"], direct["acks"]["puts"], direct["acks"]["sent_bytes"]) == (300, 300, 0)
    assert direct["acks"]["count"] / direct["acks"]["rate"] > 0.25
    assert direct["deleted_s"] > 0.25
    assert jobs["ours", 300]["left"]["segments"] <= 20
    assert ET.parse(tmp_path / "answer.svg").getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_a_job_at_the_pace_of_jobs_is_read_while_its_markers_come(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/no/such/java")
    effort = replace(TINY, pace_minutes=1 / 60)
    beside = markers.run(markers.Asked(parts=["slow"], effort=effort, store=str(tmp_path))).beside
    [row] = beside.paced
    sent = [size for _, size in row.points]
    assert len(sent) == READINGS
    assert sent == sorted(sent)
    assert row.job.acks.count == row.points[-1][0] > 0
    assert sent[-1] <= (row.job.acks.sent_bytes or 0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.release  # starts Spark, or a JVM with Hudi, for figures that no promise rests on
@pytest.mark.spark
def test_hudis_timeline_server_takes_part_as_it_is_and_at_the_best_of_its_settings():
    require_java()
    answer = markers.run(markers.Asked(parts=["beside"], effort=TINY))
    if "Hudi's timeline server" in answer.absent:
        pytest.skip(answer.absent["Hudi's timeline server"])
    assert len(answer.trials) == 2
    assert {"Hudi 1.2.0, 50 ms, 20 threads", min(answer.trials, key=answer.trials.__getitem__)} <= {
        row.title for row in answer.beside.loads[0].rows
    }
    for row in answer.beside.jobs:
        if row.side.startswith("hudi"):
            assert 1 <= (row.job.acks.puts or 0) <= row.job.acks.count
            assert (row.job.acks.amplification or 0) >= 1
