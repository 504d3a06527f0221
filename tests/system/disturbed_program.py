"""A driver of its own, whose appends are disturbed in chosen ways, and which notes how each of them ended.

Run as ``python -m tests.system.disturbed_program <master> <folder> <case>...``. It does not end by itself: its
executors, and with them tasks that have outlived their job, are there for as long as a test wants.
"""

import json
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from tallymark.engine import table as table_module
from tallymark.engine.settings import LeaseSettings
from tallymark.spark_glue import stage
from tallymark.spark_glue.stage import write_partition
from tests.support.spark import start_session
from tests.system import attempts
from tests.system.spark import faults
from tests.system.spark.jobs import wide_rows, write

TABLE = "table"
NOTES = "notes"

TWO_HOSTS = {
    "spark.cores.max": "2",
    "spark.executor.cores": "1",
    "spark.executor.memory": "512m",
    "spark.scheduler.minRegisteredResourcesRatio": "1",  # else one executor might get both tasks
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
}
SPECULATION = {
    **TWO_HOSTS,
    "spark.speculation": "true",
    "spark.speculation.interval": "200ms",
    "spark.speculation.multiplier": "1.5",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.minTaskRuntime": "200ms",
}
LATE_KILLS = {"spark.python.task.killTimeout": "300s"}
"""Spark lets the Python of a cancelled task live for this long."""

USUAL_LEASE = LeaseSettings()
SHORT_LEASE = LeaseSettings(heartbeat_interval_s=0.25, expiry_s=4.0)
GROUP = "the write"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    point: attempts.Point
    act: attempts.Act
    conf: Mapping[str, str] = field(default_factory=dict)
    lease: LeaseSettings = USUAL_LEASE
    is_shuffled: bool = False
    is_cancelled: bool = False
    """By its job group, once an attempt is held."""


CASES = {
    "both twins publish": Case(point="published", act=attempts.meet_its_twin, conf=SPECULATION),
    "a twin hangs": Case(point="half way", act=attempts.hold, conf=SPECULATION),
    "an executor is lost": Case(point="all rows in", act=attempts.orphan, conf=TWO_HOSTS),
    "an executor is lost with its shuffle files": Case(
        point="all rows in", act=attempts.orphan, conf=TWO_HOSTS, is_shuffled=True
    ),
    "a task is held": Case(point="all rows in", act=attempts.hold, conf=LATE_KILLS),
    "a task is held, and the lease is short": Case(
        point="all rows in", act=attempts.hold, conf=LATE_KILLS, lease=SHORT_LEASE
    ),
    "a task is held, and its group cancelled": Case(
        point="all rows in", act=attempts.hold, conf=LATE_KILLS, is_cancelled=True
    ),
}


def run(master: str, folder: Path, *names: str) -> None:
    """One case after another, in one session and each in a folder of its own; their settings are those of the first."""
    session = start_session(master, **CASES[names[0]].conf)
    for name in names:
        run_case(CASES[name], session, folder / name)
    threading.Event().wait()


def run_case(case: Case, session: SparkSession, folder: Path) -> None:
    table, notes = folder / TABLE, folder / NOTES
    stage.write_partition = partial(attempts.disturbed, write_partition, notes, table, case.point, case.act)
    table_module.LeaseSettings = lambda: case.lease  # type: ignore[attr-defined, misc, assignment]
    rows = wide_rows(session)
    if case.is_shuffled:
        rows = rows.repartition(2, "id")
    if case.is_cancelled:
        session.sparkContext.setJobGroup(GROUP, GROUP)
        threading.Thread(target=cancel_when_held, args=(session, notes), daemon=True).start()
    try:
        result = write(rows, table)
    except BaseException as error:
        outcome: dict[str, object] = {"error": type(error).__name__}
    else:
        outcome = {"markers": result.markers, "files": result.files, "rows": result.rows}
    attempts.leave(notes / "outcome", json.dumps(outcome))


def cancel_when_held(session: SparkSession, notes: Path) -> None:
    faults.await_that((notes / "held").exists)
    session.sparkContext.cancelJobGroup(GROUP)


if __name__ == "__main__":
    _, chosen_master, chosen_folder, *chosen_cases = sys.argv
    run(chosen_master, Path(chosen_folder), *chosen_cases)
