"""A driver that serves markers and does nothing else: the program of a process that is to be killed.

One line of JSON comes in and says which table, the secret that the keys of all instants come from, and of which instant
the folder is slow, if one is; one goes out with the port. It ends with its input.
"""

import functools
import json
import sys
from pathlib import Path
from typing import Any, TextIO

import anyio
import anyio.to_thread

from tallymark.backends import open_backend
from tallymark.backends.contract import Backend
from tallymark.bench.defects.slow_folder import SlowFolder
from tallymark.engine.markers import open_marker_engine
from tallymark.engine.markers.segment import marker_folder
from tallymark.engine.rpc.dispatcher import MarkerHandler
from tallymark.engine.rpc.server import JobServer
from tallymark.engine.settings import ServiceSettings


async def main(lines: TextIO, answers: TextIO) -> None:
    told = json.loads(lines.readline())
    async with open_marker_engine(_backend(told)) as engine, anyio.create_task_group() as tasks:
        server = JobServer(bytes.fromhex(told["secret"]), ServiceSettings(), MarkerHandler(engine))
        _, port = await tasks.start(server.run)
        answers.write(json.dumps({"port": port}) + "\n")
        answers.flush()
        await anyio.to_thread.run_sync(lines.read)
        tasks.cancel_scope.cancel()


def _backend(told: dict[str, Any]) -> Backend:
    if "slow" in told:
        return SlowFolder(Path(told["table"]), marker_folder(told["slow"]), told["slow_s"])
    return open_backend(told["table"])


if __name__ == "__main__":
    anyio.run(functools.partial(main, sys.stdin, sys.stdout), backend="trio")
