"""A driver of its own that writes to a store elsewhere, and is killed at a chosen point of a dynamic overwrite.

Run as ``python -m tests.system.spark.driver_elsewhere <url> <point> <flag> <Hadoop's settings as JSON>``.
"""

import json
import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import get_args

from pyspark.sql import SparkSession

from tallymark.backends import StorageOptions, open_backend
from tallymark.engine import table as table_module
from tallymark.spark_glue import stage
from tests.support.place import Place
from tests.support.spark import LOCAL, start_session
from tests.system.spark.driver_program import DeadlyLog, Point
from tests.system.spark.elsewhere import disturbed, kill, write
from tests.system.spark.jobs import wide_rows


def doom(point: Point, flag: Path) -> None:
    """From now on a write of this process ends in its SIGKILL at the point; the flag tells that a task did it."""
    if point == "while tasks write":
        stage.write_partition = disturbed(flag, partial(kill, os.getpid()))  # type: ignore[assignment]

    def open_deadly(url: str, *, options: StorageOptions | None = None) -> DeadlyLog:
        return DeadlyLog(open_backend(url, options=options), point)

    table_module.open_backend = open_deadly  # type: ignore[attr-defined, assignment]


def start_session_at(settings: Mapping[str, str]) -> SparkSession:
    """A session with these settings of Hadoop's."""
    return start_session(LOCAL, **{f"spark.hadoop.{name}": value for name, value in settings.items()})


def run(url: str, point: Point, flag: Path, settings: dict[str, str]) -> None:
    rows = wide_rows(start_session_at(settings), version=1, partitions=2)
    doom(point, flag)
    write(rows, Place(url=url, objects=dict), mode="overwrite")


if __name__ == "__main__":
    _, chosen_url, chosen_point, chosen_flag, told = sys.argv
    assert chosen_point in get_args(Point)
    run(chosen_url, chosen_point, Path(chosen_flag), json.loads(told))  # type: ignore[arg-type]
