"""A driver of its own, which is killed at a chosen point of an append, one that fills small files, or an overwrite.

Run as ``python -m tests.system.spark.driver_program <master> <table> <mode> <point> [<txn>]``.
"""

import os
import signal
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args

from tallymark import SizingSettings
from tallymark.backends import Backend, open_backend
from tallymark.engine import table as table_module
from tallymark.engine.timeline.log import LOG_FOLDER
from tests.support.spark import start_session
from tests.system.spark import faults
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


def run(master: str, table: Path, mode: Mode, point: Point, txn: str | None) -> None:
    rows = wide_rows(start_session(master), version=1, partitions=2)
    kill = partial(faults.kill_driver, table, os.getpid())
    if point == "while tasks write" and mode == "fill":  # its rows are shuffled before a task writes any
        threading.Thread(target=kill, daemon=True).start()
    elif point == "while tasks write":
        rows = faults.with_fault(rows, kill)
    table_module.open_backend = lambda url, **_: DeadlyLog(open_backend(url), point)  # type: ignore[attr-defined]
    if mode == "fill":
        write(rows, table, txn=txn, sizing=SizingSettings())
    else:
        write(rows, table, mode=mode, txn=txn)


if __name__ == "__main__":
    _, chosen_master, chosen_table, chosen_mode, chosen_point, *named = sys.argv
    assert chosen_point in get_args(Point)
    run(chosen_master, Path(chosen_table), chosen_mode, chosen_point, next(iter(named), None))  # type: ignore[arg-type]
