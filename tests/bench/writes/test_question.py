import pytest

from tallymark.bench.writes.case import case
from tallymark.bench.writes.order import Done
from tallymark.bench.writes.process_tree import Spent
from tallymark.bench.writes.question import shown


def done(wall_s, cpu_s, **figures):
    return Done(wall_s=wall_s, spent=Spent(driver_s=0.0, jvm_s=cpu_s, python_s=0.0, forks_s=0.0), figures=figures)


def test_ratios_are_ours_over_the_other_within_a_round():
    ours = (done(1.0, 2.0, markers=8, marker_objects=2, marker_deletion_s=0.5), done(3.0, 2.0))
    other = (done(2.0, 1.0, requests_put=165, requests_head=165), done(3.0, 1.0))
    found = {"Tallymark": ("ours", ours), "Spark": ("v1", other)}
    times, markers, requests = shown(case("small-files", 0.01), "a case", found, {"Hudi": "no jar"})
    assert [row.wall_ratio and row.wall_ratio.value for row in times.rows] == [None, 0.75]
    assert [row.cpu_ratio and row.cpu_ratio.value for row in times.rows] == [None, 2.0]
    assert times.absent == {"Hudi": "no jar"}
    assert [(row.title, row.deletion) for row in markers.rows[:1]] == [("Tallymark", "500 ms")]
    assert [row.result for row in markers.rows[1:]] == [None, None, "31 % faster"]
    [row] = requests.rows
    assert (row.put, row.per_file) == (165, pytest.approx(330 / case("small-files", 0.01).files))
