import json
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from tallymark.bench.__main__ import main
from tallymark.bench.made_table import TableShape
from tallymark.bench.markers import commits, crowd, disturbed, outside, pace_cost, pages, question, recovery, throughput
from tests.support.jars import QUICK_JAVA, java

TINY = question.Effort(
    rounds=1,
    seconds=1,
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


def tables(tmp_path, part, effort=TINY):
    asked = question.Asked(parts=[part], effort=effort, store=str(tmp_path))
    return list(question.tables(asked, lambda text: None))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--part", "nothing"), "'nothing' is not one of"),
        (("--markers", "0"), "0 is not in the range"),
        (("--store", "memory:"), "memory: is a store of one process"),
        (("--store", "/no/such/place"), "/no/such/place is not a directory"),
    ],
)
def test_what_cannot_be_measured_is_refused(arguments, problem):
    result = run(*arguments)
    assert result.exit_code != 0
    assert problem in result.stderr


@pytest.mark.release
def test_without_a_java_hudis_server_is_left_out_and_the_folder_is_clean(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/no/such/java")
    (tmp_path / "mine").write_text("not the harness's")
    few, many, jobs, *_ = tables(tmp_path, "beside")
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert "/no/such/java" in few.absent["Hudi's timeline server"]
    sides = ["ours", "ours-inside", "ours-direct"]
    assert [row.side for row in few.rows] == [row.side for row in many.rows] == sides
    assert [(row.side, row.markers) for row in jobs.rows] == [
        (side, count) for count in (10, 50) for side in ("ours", "ours-inside")
    ]
    ours = jobs.rows[2]
    assert 1 <= ours.amplification <= 4
    assert (ours.puts >= ours.segments, ours.others) == (True, 2)


def test_the_published_jobs_become_rows_and_a_chart(tmp_path):
    files = ("--json", tmp_path / "answer.json", "--svg", tmp_path / "answer.svg")
    result = run("--quick", "--part", "published", "--markers", 300, "--latency-ms", 5, "--rate-limit", 1000, *files)
    assert (result.exit_code, result.stderr) == (0, "")
    [table] = json.loads((tmp_path / "answer.json").read_text())["tables"]
    rows = {(row["side"], row["markers"]): row for row in table["rows"]}
    assert rows.keys() == {(side, count) for side in ("ours", "ours-direct") for count in (200, 300)}
    direct = rows["ours-direct", 300]
    assert (direct["segments"], direct["puts"], direct["sent_bytes"]) == (300, 300, 0)
    assert direct["created_s"] > 0.25
    assert rows["ours", 300]["segments"] <= 20
    assert "Tallymark, direct" in (tmp_path / "answer.svg").read_text()


def test_a_job_at_the_pace_of_jobs_is_read_while_its_markers_are_created(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/no/such/java")
    jobs, _, points = tables(tmp_path, "slow", replace(TINY, pace_minutes=1 / 60))
    written = [row.written_bytes for row in points.rows]
    assert len(written) == question.READINGS
    assert written == sorted(written)
    assert jobs.rows[0].markers == points.rows[-1].markers > 0


def ack(side, mean_s, rate):
    latency = {"mean_s": mean_s, "p50_s": mean_s, "p99_s": 2 * mean_s, "p999_s": 2 * mean_s}
    figures = {"puts": 1, "sent_bytes": 1, "amplification": 1.0, "cpu_us": 1.0, "caller_cpu_us": 1.0}
    return question.AckRow(side=side, title=side, rate=rate, **latency, **figures)


def job(side, markers, sent_bytes):
    figures: dict[str, Any] = {
        "puts": 1,
        "amplification": 1.0,
        "cpu_us": 1.0,
        "segments": 1,
        "others": 2,
        "deleted_s": 1.0,
    }
    return question.JobRow(
        side=side, title=side, markers=markers, created_s=1.0, rate=1.0, sent_bytes=sent_bytes, **figures
    )


def test_bars_compare_acks_rates_and_the_bytes_of_the_largest_job():
    few = [ack("ours", 0.002, 1.0), ack("hudi", 0.030, 1.0)]
    many = [ack("ours", 0.1, 9000.0), ack("hudi", 0.2, 3000.0)]
    jobs = [job("ours", 1000, 9), job("hudi", 1000, 9), job("ours", 9000, 2e6), job("hudi", 9000, 1e8)]
    assert [row.times for row in question.bars(few, many, jobs)] == pytest.approx([15, 15, 3, 50])


def test_a_recovery_reads_every_segment():
    found = recovery.measure_recovery(200, request_s=0.0, rounds=1)
    assert (found.markers, found.segments > 0, found.recovery_s > 0) == (200, True, True)


@pytest.mark.parametrize("case", throughput.CASES, ids=lambda case: case.title)
def test_a_service_acks_the_requests_of_other_processes(case):
    found = throughput.measure(case, 0.5)
    assert found.requests_s > 0
    assert found.markers_s == pytest.approx(case.names * found.requests_s)


@pytest.mark.parametrize(("put_s", "rate"), [(0.002, None), (0.03, None), (0.03, 200.0)])
def test_an_ack_takes_longer_than_its_put(put_s, rate):
    assert pace_cost.measure(put_s, rate, 0.5).ratio > 1


def test_an_ack_outside_of_the_driver_follows_a_read():
    disk, stand_in = outside.table(rounds=1, length_s=1.0, loads=outside.LOADS[:1]).rows
    assert disk.outside_per_s > 0
    assert stand_in.ratio > 1.3, "a read takes as long as a put"


def test_a_job_gets_its_acks_beside_other_clients():
    tried = disturbed.disturbances(0.02)
    assert [each.kind for each in tried] == ["idle", "slow", "large", "waiting", "pages", "pages"]
    others = disturbed.table(rounds=1, length_s=0.5, tried=tried[:4]).rows
    assert [(row.acks > 0, row.pages) for row in others] == [(True, 0)] * 4
    [browsers] = disturbed.table(rounds=1, length_s=2.0, tried=[replace(tried[-1], length=1)]).rows
    assert browsers.acks > 0
    assert browsers.pages > 0, "a page takes half a second where other programs use the cores, too"


def test_pages_of_a_large_table_and_of_many_are_timed():
    shape = TableShape(files=100, partitions=4, commits=5)
    small = pages.Pages(large=shape, small=shape, tables=3, processes=1, repeats=1, poll_s=0.1)
    large = pages.large_table(small).rows
    assert [row.title for row in large][:2] == ["page, the first of a new process", "page, after a commit of 100 files"]
    assert all(0 < row.took_s <= row.worst_s and row.memory > 0 for row in large)
    fleet = pages.fleet_table(small).rows
    assert [row.unread for row in fleet if "first" not in row.title] == [0] * 4
    assert all(row.took_s <= row.whole_s for row in fleet)


def test_a_service_of_many_open_jobs_has_all_of_their_markers():
    [row] = crowd.table(crowd.Crowd(tables=2, jobs=6, markers=5)).rows
    assert (row.markers, row.missing) == (60, 0)
    assert row.before > 0


@pytest.mark.anyio
async def test_puts_of_a_write_grow_with_its_files_and_with_nothing_else(anyio_backend):
    found = await commits.measure(20)
    assert 0 < found.puts_beside_files < 30


@pytest.mark.release
@pytest.mark.spark
def test_hudis_timeline_server_takes_part_with_its_defaults_and_at_its_best(tmp_path, monkeypatch):
    java()
    for name, value in QUICK_JAVA.items():
        monkeypatch.setenv(name, value)
    few, _, jobs, bars, trials = tables(tmp_path, "beside")
    if few.absent:
        pytest.skip(str(few.absent))
    assert len(trials.rows) == 2
    assert "Hudi 1.2.0, 50 ms, 20 threads" in {row.title for row in few.rows}
    assert {row.title for row in bars.rows} <= {row.title for row in jobs.rows}
