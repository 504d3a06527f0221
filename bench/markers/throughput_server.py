"""The process of a service of markers, as a job's driver runs one: an engine on a store in memory whose puts take time.

One line of JSON comes in and says how long a put takes; one goes out with where to ask; one comes in for each reading,
and may say how long puts take from now on. It ends with its input.
"""

import functools
import json
import resource
import secrets
import sys
import time
from pathlib import Path
from typing import Any, TextIO

import anyio
import anyio.to_thread

from tallymark.backends.measured import MeasuredBackend
from tallymark.bench.markers.delayed import DelayedMemory
from tallymark.bench.markers.put_meter import PutMeter
from tallymark.engine.markers import open_marker_engine
from tallymark.engine.rpc.dispatcher import MarkerHandler
from tallymark.engine.rpc.server import JobServer
from tallymark.engine.settings import MarkerSettings, ServiceSettings

INSTANT = "20260102030405006"


async def main(lines: TextIO, answers: TextIO) -> None:
    asked = json.loads(lines.readline())
    settings = MarkerSettings(**asked["settings"])
    meter = PutMeter()
    store = DelayedMemory(asked["put_s"])
    async with (
        open_marker_engine(MeasuredBackend(store, meter), settings) as engine,
        anyio.create_task_group() as tasks,
    ):
        server = JobServer(secrets.token_bytes(32), ServiceSettings(), MarkerHandler(engine))
        await tasks.start(lambda *, task_status: server.run(task_status=task_status))
        address = server.address(INSTANT)
        _answer(answers, {"host": address.host, "port": address.port, "job_key": address.job_key.hex()})
        while line := await anyio.to_thread.run_sync(lines.readline):
            store.put_s = json.loads(line).get("put_s", store.put_s)
            counts = engine.statistics()
            puts = {"puts": meter.puts, "puts_s": meter.puts_s}
            asked = server.statistics()
            reading = {"cpu_s": time.process_time(), "requests": asked.requests, "inflight": asked.inflight}
            held = {"pending": counts.waiting + counts.inflight, "rss_bytes": _rss_bytes()}
            done = {"durable": counts.durable, "flushes": counts.batches_flushed}
            _answer(answers, {**reading, **held, **done, **puts})
        tasks.cancel_scope.cancel()


def _rss_bytes() -> int:
    """What this process has in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _answer(answers: TextIO, fields: dict[str, Any]) -> None:
    answers.write(json.dumps(fields) + "\n")
    answers.flush()


if __name__ == "__main__":
    anyio.run(functools.partial(main, sys.stdin, sys.stdout), backend="trio")
