from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO
from xml.etree import ElementTree as ET

from rich.console import Console

from tallymark.bench.machine import Machine
from tallymark.bench.report import WIDTH
from tallymark.bench.views import plot, report
from tallymark.bench.views.answer import Sync, ViewAnswer, ViewRow, ViewSection
from tallymark.bench.views.ground import Effort
from tallymark.bench.views.latency import Latency
from tallymark.bench.views.load import Load
from tallymark.bench.views.side import Followed, LookUps, Opening
from tallymark.bench.views.table import TableShape

LATENCY = Latency.of([0.0005, 0.002])
LOAD = Load(latency=LATENCY, late=LATENCY, rate=1999.0)


def row(side, *synced_s):
    followed = tuple(Followed(synced_s=each, answered_s=2 * each) for each in synced_s)
    return ViewRow(
        side=side,
        title=f"the side {side}",
        opening=Opening(first_s=0.25, ready_s=0.5, grown_bytes=120_000),
        look_ups=LookUps(alone=LATENCY, load=LOAD),
        syncs=(Sync(files=10, followed=followed),),
    )


LISTING = ViewRow(side="disk", title="the side disk", opening=Opening(), look_ups=LookUps(alone=LATENCY))

ANSWER = ViewAnswer(
    began=datetime(2026, 11, 21, tzinfo=UTC),
    machine=Machine.here(),
    effort=Effort(),
    sections=(
        ViewSection(shape=TableShape(files=1000), rows=(row("ours", 0.010, 0.040, 0.020), LISTING)),
        ViewSection(shape=TableShape(files=5000), rows=(row("ours", 0.030, 0.015, 0.090), row("late", 0.5), LISTING)),
    ),
    absent={"the side of others": "it was not there"},
)


def test_what_following_takes_is_compared_by_the_best_of_the_smallest_and_of_the_largest_table():
    assert list(ANSWER.growths()) == [("the side ours", 10, 1.5)]
    assert list(replace(ANSWER, sections=ANSWER.sections[:1]).growths()) == []


def test_memory_is_told_by_the_file_and_only_of_those_who_hold_something():
    first, second = ANSWER.sections
    assert [first.bytes_per_file(each) for each in first.rows] == [120.0, None]
    assert second.bytes_per_file(second.rows[0]) == 24.0


def test_people_see_every_side_and_who_was_left_out_and_why():
    page = StringIO()
    report.show(Console(file=page, width=WIDTH), ANSWER)
    said = page.getvalue()
    assert said.count("the side ours") == 7
    assert "20.0 ms / 40.0 ms" in said
    assert "without the side of others: it was not there" in said


def test_the_plot_has_a_point_for_each_side_and_way_of_asking():
    found = ET.fromstring(plot.draw(ANSWER))
    points = [circle for circle in found.iter("{http://www.w3.org/2000/svg}circle") if len(circle)]
    assert len(points) == 2 + 1 + 4 + 1


def test_the_document_says_what_was_followed_and_how():
    document = ANSWER.document()
    assert document["question"] == "views"
    assert document["sync_growth"] == [{"title": "the side ours", "files": 10, "ratio": 1.5}]
    assert document["sections"][0]["rows"][0]["syncs"][0]["followed"][0] == {"synced_s": 0.010, "answered_s": 0.020}
