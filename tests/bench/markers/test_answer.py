from datetime import UTC, datetime
from io import StringIO
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from tallymark.bench.machine import Machine
from tallymark.bench.markers import plot, report
from tallymark.bench.markers.alone import Alone
from tallymark.bench.markers.answer import AckRow, Beside, JobRow, LoadRows, MarkersAnswer, PacedRow
from tallymark.bench.markers.bytes_plot import ticks
from tallymark.bench.markers.effort import Effort
from tallymark.bench.markers.measured import Acks, Job
from tallymark.bench.markers.model import Load, simulate
from tallymark.bench.markers.page import WIDTH
from tallymark.bench.markers.recovery import measure_recovery
from tallymark.bench.markers.side import Left
from tallymark.bench.views.latency import Latency


def acks(mean_s, *, rate=1000.0, sent_bytes=None, count=1000):
    return Acks(
        count=count,
        mean_s=mean_s,
        latency=Latency.of([mean_s, 2 * mean_s]),
        rate=rate,
        puts=40,
        sent_bytes=sent_bytes,
        disk_bytes=4096,
        cpu_us=25.0,
        caller_cpu_us=10.0,
    )


def job(side, sent_bytes, *, count=1000):
    found = acks(0.004, sent_bytes=sent_bytes, count=count)
    return JobRow(
        side=side,
        title=f"the side {side}, as it is",
        job=Job(acks=found, left=Left(objects=22, segments=20), deleted_s=0.06),
    )


def paced(side, sent_bytes):
    found = job(side, sent_bytes)
    return PacedRow(side=side, title=found.title, job=found.job, points=((500, sent_bytes // 2), (1000, sent_bytes)))


def rows(**by_side):
    return tuple(AckRow(side=side, title=f"the side {side}, as it is", acks=found) for side, found in by_side.items())


ANSWER = MarkersAnswer(
    began=datetime(2026, 11, 22, tzinfo=UTC),
    machine=Machine.here(),
    effort=Effort(),
    where="a disk",
    beside=Beside(
        loads=(
            LoadRows(load="few", is_open=True, rows=rows(ours=acks(0.002), hudi=acks(0.030))),
            LoadRows(load="many", is_open=False, rows=rows(ours=acks(0.1, rate=9000.0), hudi=acks(0.2, rate=3000.0))),
        ),
        jobs=(job("ours", 220_000), job("hudi", 900_000), job("ours", 2e6, count=9000), job("hudi", 1e8, count=9000)),
        paced_load="slowly",
        paced=(paced("ours", 2_000), paced("hudi", 60_000)),
    ),
    trials={"the side hudi, at 5 ms": 0.01},
    far="a far store",
    published=(job("ours", 220_000), job("ours-direct", None)),
    alone=Alone(
        recoveries=(measure_recovery(100, request_s=0.0, rounds=1),),
        outcomes=(simulate(Load(shape="constant", put_s=0.03, rate=1000.0, flushes=10)),),
    ),
    absent={"the side of others": "it was not there"},
)


def test_ours_is_held_against_hudis_server_by_acks_rate_and_the_bytes_of_the_largest_job():
    held = {each.what: each.times for each in ANSWER.beside.held()}
    assert held == pytest.approx(
        {
            "mean ack, times lower": 15,
            "99 % of acks, times lower": 15,
            "markers a second, times as many": 3,
            "bytes for 9,000 markers, times fewer": 50,
            "bytes at the pace of a job, times fewer": 30,
        }
    )


def test_people_see_every_side_what_was_tried_and_who_was_left_out_and_why():
    page = StringIO()
    report.show(Console(file=page, width=WIDTH), ANSWER)
    said = page.getvalue()
    assert said.count("the side ours, as it is") == 2 + 2 + 1 + 1
    assert said.count("20 + 2") == 8
    assert "the side hudi, at 5 ms" in said
    assert "constant puts of 30.0 ms" in said
    assert "beyond reading for 165,000" in said
    assert "without the side of others: it was not there" in said


def test_the_plot_has_a_mark_for_each_side_of_each_load_and_job():
    found = ET.fromstring(plot.draw(ANSWER))
    kinds = {kind: len([*found.iter(f"{{http://www.w3.org/2000/svg}}{kind}")]) for kind in ("circle", "polyline")}
    bars = [rect for rect in found.iter("{http://www.w3.org/2000/svg}rect") if len(rect)]
    assert kinds == {"circle": 2, "polyline": 3}
    assert len(bars) == 2 + 2 * 2


@pytest.mark.parametrize(
    ("most", "expected"),
    [(165_000, [0, 50_000, 100_000, 150_000]), (4.0, [0, 1, 2, 3, 4]), (9.9e9, [0, 2.5e9, 5e9, 7.5e9])],
)
def test_an_axis_has_round_figures_from_zero_on(most, expected):
    assert ticks(most) == expected


def test_the_document_holds_what_was_measured_and_what_it_comes_to():
    document = ANSWER.document()
    assert document["question"] == "markers"
    assert document["beside"]["loads"][0]["rows"][0]["acks"]["latency"]["p99_s"] == 0.004
    assert document["published"][0]["job"]["left"] == {"objects": 22, "segments": 20}
    assert len(document["held"]) == 5
    assert [found["markers"] for found in document["alone"]["recovery"]] == [100]
