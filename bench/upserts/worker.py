"""The process of the library by itself, or of the floor: one write for each line on stdin, as Spark's workers do it."""

import functools
import json
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TextIO

import anyio
import anyio.to_thread

import tallymark
from tallymark.backends.measured import MeasuredBackend
from tallymark.backends.meter import RequestMeter
from tallymark.backends.open import open_backend
from tallymark.bench.upserts.engine import InTurn, rewrite, touched, write
from tallymark.bench.writes.order import Done, Figures, Order
from tallymark.bench.writes.process_tree import Spent

FLOOR = "floor"


async def main(lines: Iterable[str], answers: TextIO) -> None:
    """Until the lines end."""
    lines = iter(lines)
    name = json.loads(next(lines))["writer"]
    answers.write(json.dumps({"spark": ""}) + "\n")
    answers.flush()
    for line in lines:
        asked = json.loads(line)
        if "count" in asked:
            snapshot = await tallymark.open_table(asked["count"]).snapshot()
            answer = json.dumps({"rows": sum(file.rows for file in snapshot.files)})
        else:
            answer = (await _done(name, Order.decode(line))).encode()
        answers.write(answer + "\n")
        answers.flush()


async def _done(name: str, order: Order) -> Done:
    """Do one write; the floor's tables are made as the library's."""
    is_floor = name == FLOOR and order.mode == "upsert"
    files = touched(order) if is_floor else []
    wall, cpu = time.perf_counter(), time.process_time()
    figures = await (_rewritten(files) if is_floor else _written(order))
    spent = Spent(driver_s=time.process_time() - cpu, jvm_s=0.0, python_s=0.0, forks_s=0.0)
    return Done(wall_s=time.perf_counter() - wall, spent=spent, figures=figures)


async def _rewritten(files: Sequence[Path]) -> Figures:
    for path in files:
        await anyio.to_thread.run_sync(rewrite, path)
    return {"read_bytes": sum(path.stat().st_size for path in files)}


async def _written(order: Order) -> Figures:
    meter, run = RequestMeter(), InTurn()
    result = await write(order, run, MeasuredBackend(open_backend(order.target), meter))
    run.end("commit")
    assert result.changes is None or not result.changes.ignored, "every row of the batch is newer"
    seen = meter.statistics()
    return {**run.figures, "requests": seen.count, "read_bytes": seen.received_bytes}


if __name__ == "__main__":
    anyio.run(functools.partial(main, sys.stdin, sys.stdout), backend="trio")
