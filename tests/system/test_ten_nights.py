"""Ten nights of one pipeline: appends, reruns, overwrites, drivers that die, two jobs at once, `clean`.

Every morning four readers see the same rows, those of a model of a few lines, and storage holds what the log says.
"""

import json
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

import anyio
import pytest
from pyspark.sql import SparkSession

import tallymark
from tallymark import ConflictError, InvalidRequest, Table, WriteResult
from tests.support import process
from tests.support.hadoop_aws import hadoop_aws_jars
from tests.support.place import Place, place_on
from tests.support.readers import assert_readers_agree
from tests.support.storage import objects
from tests.system import elsewhere
from tests.system.driver_program import Point
from tests.system.elsewhere import boom, disturb, reach
from tests.system.jobs import run_both
from tests.system.nights import Held, Load
from tests.table_invariants import commits, table_is_at_rest

pytestmark = pytest.mark.spark


@dataclass(slots=True)
class Lake:
    spark: SparkSession
    place: Place
    flags: Path
    held: Held = field(default_factory=Held)

    def table(self) -> Table:
        return tallymark.open_table(self.place.url, options=self.place.options)

    def run(self, load: Load) -> WriteResult:
        """A job that is to succeed."""
        result = load.write(load.rows(self.spark), self.place.native_url)
        if not result.is_rerun:
            self.held.take(load)
        return result

    def run_until_killed(self, load: Load, point: Point) -> None:
        """Returns when the driver, and all that it has left behind, is gone."""
        flag, settings = self.flags / f"killed-{load.first}", json.dumps(dict(self.place.spark_conf))
        told = [self.place.native_url, point, str(flag), json.dumps(asdict(load)), settings]
        await_the_rest = process.run_until_killed("tests.system.night_program", *told)
        await_the_rest()

    def run_both(self, *loads: Load) -> list[Future[WriteResult]]:
        """At once: each waits in its task until the other has come as far."""
        meeting = self.flags / f"{loads[0].first}"
        meeting.mkdir()
        jobs = [(load.rows(self.spark, tasks=1), partial(load.write, url=self.place.native_url)) for load in loads]
        return run_both(meeting, *jobs)

    def morning(self) -> None:
        """All readers see what the nights have brought, and nothing else lies there."""
        expected = self.held.rows(self.spark)
        if "://" in self.place.url:
            elsewhere.assert_at_rest(self.spark, self.place, expected)
        else:
            table_is_at_rest(self.place.objects())
            assert_readers_agree(self.spark, Path(self.place.url), expected)


ELSEWHERE = [pytest.param(store, marks=pytest.mark.release) for store in ("s3", "hdfs")]
"""Nine and four minutes: each of their steps has a test of its own on these stores."""


@pytest.fixture(params=["local disk", *ELSEWHERE])
def lake(request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path) -> Lake:
    if request.param == "local disk":
        table = tmp_path / "table"
        return Lake(spark, Place(url=str(table), objects=lambda: objects(table)), tmp_path)
    if request.param == "s3":
        hadoop_aws_jars()
    place = place_on(request.param, request)
    reach(spark, place)
    return Lake(spark, place, tmp_path)


@pytest.mark.release
def test_ten_nights(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    nights: list[Callable[[Lake], None]] = [
        first_load,
        load_that_the_scheduler_runs_twice,
        load_whose_driver_dies_while_tasks_write,
        days_that_are_corrected,
        load_and_correction_at_once,
        correction_whose_driver_dies_after_its_entry,
        two_corrections_of_one_day_at_once,
        load_that_the_operator_rolls_back,
        partial(month_that_is_made_anew, patch=monkeypatch),
        jobs_that_are_refused_and_a_clean,
    ]
    for night in nights:
        night(lake)
        lake.morning()
    assert_each_txn_once(lake.place)


def assert_each_txn_once(place: Place) -> None:
    named = [entry["txn"] for entry in commits(place.objects()) if entry["txn"]]
    assert sorted(named) == sorted(set(named))
    assert len(named) == 4


def first_load(lake: Lake) -> None:
    assert lake.run(Load(first=10_000, days=(1, 2))).rows == 800


def load_that_the_scheduler_runs_twice(lake: Lake) -> None:
    load = Load(first=20_000, days=(2, 3), txn="load:2")
    done = lake.run(load)
    again = lake.run(load)
    assert (done.is_rerun, again.is_rerun, again.position) == (False, True, done.position)


def load_whose_driver_dies_while_tasks_write(lake: Lake) -> None:
    load = Load(first=30_000, days=(3, 4), txn="load:3")
    lake.run_until_killed(load, "while tasks write")
    assert not lake.run(load).is_rerun


def days_that_are_corrected(lake: Lake) -> None:
    result = lake.run(Load(first=40_000, days=(1, 2), mode="overwrite"))
    assert result.removed_files > 0
    lake.run(Load(first=41_000, days=(5,)))


def load_and_correction_at_once(lake: Lake) -> None:
    """Neither is in the other's way."""
    load, correction = Load(first=50_000, days=(6,)), Load(first=51_000, days=(3,), mode="overwrite")
    for done in lake.run_both(load, correction):
        assert done.result().rows == 400
    lake.held.take(load)
    lake.held.take(correction)


def correction_whose_driver_dies_after_its_entry(lake: Lake) -> None:
    """It has committed; the rerun finishes what was left to do, and writes nothing."""
    load = Load(first=60_000, days=(1, 4), mode="overwrite", txn="correct:6")
    lake.run_until_killed(load, "after the entry")
    lake.held.take(load)
    with pytest.raises(AssertionError):
        table_is_at_rest(lake.place.objects())
    assert lake.run(load).is_rerun


def two_corrections_of_one_day_at_once(lake: Lake) -> None:
    loads = [Load(first=first, days=(6,), mode="overwrite") for first in (70_000, 71_000)]
    done = lake.run_both(*loads)
    [lost] = [load for load, job in zip(loads, done, strict=True) if isinstance(job.exception(), ConflictError)]
    [won] = [load for load, job in zip(loads, done, strict=True) if not job.exception()]
    lake.held.take(won)
    lake.morning()
    lake.run(replace(lost, days=(6, 7)))


def load_that_the_operator_rolls_back(lake: Lake) -> None:
    load = Load(first=80_000, days=(8,), txn="load:8")
    lake.run_until_killed(load, "before the entry")
    [ended] = anyio.run(lake.table().rollback)
    assert ended.outcome == "rolled back"
    lake.morning()
    assert not lake.run(load).is_rerun


def month_that_is_made_anew(lake: Lake, *, patch: pytest.MonkeyPatch) -> None:
    """By a static overwrite of this month alone, from what was read of it; a task fails and is tried again."""
    lake.run(Load(first=90_000, days=(1,), month=2))
    read = anyio.run(lake.table().snapshot).position
    late = Load(first=91_000, days=(9,))
    lake.run(late)
    fails = lake.flags / "raised"
    anew = Load(
        first=92_000, days=(1, 2, 3), mode="overwrite", partition_overwrite="static", partition={"month": 1}, base=read
    )
    with patch.context() as patched:
        disturb(patched, fails, boom)
        lake.run(anew)
    assert fails.exists()
    lake.held.take(late)  # once more: it came after what was read, and was left alone


def jobs_that_are_refused_and_a_clean(lake: Lake) -> None:
    """A guard, a txn that meant another write, and what was read and then replaced: nothing of them is left."""
    before = lake.place.objects()
    beyond = Load(first=100_000, days=(1, 2), mode="overwrite", only_partitions={"month": 1, "day": 1})
    reused = Load(first=101_000, days=(1,), mode="overwrite", txn="load:2")
    for refused in (beyond, reused):
        with pytest.raises(InvalidRequest):
            lake.run(refused)
    with pytest.raises(ConflictError):
        lake.run(Load(first=102_000, days=(1,), mode="overwrite", base=1))
    assert commits(lake.place.objects()) == commits(before)
    assert anyio.run(lake.table().clean).files == 0
