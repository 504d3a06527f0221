"""A driver of its own, which is killed at a chosen point of an append, one that fills small files, or an overwrite.

Run as ``python -m tests.system.spark.driver_program <master> <url> <mode> <point> <flag> <settings> [<txn>]``. The flag
is a file that tells that a task did it, the settings are Hadoop's as JSON.
"""

import json
import os
import signal
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from tallymark import SizingSettings
from tallymark.backends import Backend, open_backend
from tallymark.engine import table as table_module
from tallymark.engine.timeline.log import LOG_FOLDER
from tallymark.spark_glue import stage
from tests.support.spark import start_session
from tests.system.spark.elsewhere import disturbed, kill
from tests.system.spark.jobs import wide_rows, write

Mode = Literal["append", "fill", "overwrite"]
Point = Literal["while tasks write", "before the entry", "after the entry"]


class DeadlyLog:
    """A backend on which this process dies just before, or just after, it puts an entry of the commit log."""

    def __init__(self, inner: Backend, point: Point) -> None:
        self._inner = inner
        self._point = point

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def put_new(self, path: str, data: bytes) -> None:
        is_entry = path.startswith(LOG_FOLDER)
        if is_entry and self._point == "before the entry":
            os.kill(os.getpid(), signal.SIGKILL)
        await self._inner.put_new(path, data)
        if is_entry and self._point == "after the entry":
            os.kill(os.getpid(), signal.SIGKILL)


def run(
    master: str, url: str, mode: Mode, point: Point, flag: Path, settings: Mapping[str, str], txn: str | None
) -> None:
    session = start_session(master, **{f"spark.hadoop.{name}": value for name, value in settings.items()})
    rows = wide_rows(session, version=1, partitions=2)
    if point == "while tasks write":
        stage.write_partition = disturbed(flag, partial(kill, os.getpid()))
    table_module.open_backend = lambda url, **how: DeadlyLog(open_backend(url, **how), point)  # type: ignore[attr-defined]
    if mode == "fill":
        write(rows, url, txn=txn, sizing=SizingSettings())
    else:
        write(rows, url, mode=mode, txn=txn)


if __name__ == "__main__":
    _, chosen_master, chosen_url, chosen_mode, chosen_point, chosen_flag, told, *named = sys.argv
    assert chosen_point in get_args(Point)
    how: Any = (chosen_mode, chosen_point, Path(chosen_flag), json.loads(told), next(iter(named), None))
    run(chosen_master, chosen_url, *how)
