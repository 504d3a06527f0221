"""A night's job in a driver of its own, which is killed at a chosen point of it.

Run as ``python -m tests.system.night_program <url> <point> <flag> <the load as JSON> <Hadoop's settings as JSON>``.
"""

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import get_args

from tallymark.backends import StorageOptions, open_backend
from tallymark.engine.writes import table as table_module
from tallymark.spark_glue import stage
from tests.support.spark import LOCAL, start_session
from tests.system.driver_program import DeadlyLog, Point
from tests.system.elsewhere import disturbed, kill
from tests.system.nights import Load


def run(url: str, point: Point, flag: Path, load: Load, settings: dict[str, str]) -> None:
    session = start_session(LOCAL, **{f"spark.hadoop.{name}": value for name, value in settings.items()})
    if point == "while tasks write":
        stage.write_partition = disturbed(flag, partial(kill, os.getpid()))  # type: ignore[assignment]

    def open_deadly(url: str, *, options: StorageOptions | None = None) -> DeadlyLog:
        return DeadlyLog(open_backend(url, options=options), point)

    table_module.open_backend = open_deadly  # type: ignore[attr-defined, assignment]
    load.write(load.rows(session), url)


if __name__ == "__main__":
    _, chosen_url, chosen_point, chosen_flag, chosen_load, told = sys.argv
    assert chosen_point in get_args(Point)
    chosen = Load(**{**json.loads(chosen_load), "days": tuple(json.loads(chosen_load)["days"])})
    run(chosen_url, chosen_point, Path(chosen_flag), chosen, json.loads(told))  # type: ignore[arg-type]
