"""The process of a driver: the marker engine behind a job's service, and nothing else.

The first line of JSON that comes in says which place, and with which settings; one goes out with where to ask. Each
line after that has one key, and is answered by a line:

    reading   what the engine has done so far
    settle    wait until merges have come to rest, and say what lies in the folder of an instant
    delete    drop the markers of an instant, and say how long that took

It ends with its input.
"""

import functools
import json
import secrets
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any, TextIO

import anyio
import anyio.to_thread

from tallymark.backends import open_backend
from tallymark.backends.contract import Backend
from tallymark.bench.markers.place import options_of
from tallymark.engine.markers import MarkerEngine, open_marker_engine
from tallymark.engine.markers.segment import is_segment, marker_folder
from tallymark.engine.rpc.dispatcher import MarkerHandler
from tallymark.engine.rpc.handshake import job_key
from tallymark.engine.rpc.server import JobServer
from tallymark.engine.settings import MarkerSettings, ServiceSettings

Told = dict[str, Any]

SETTLE_S, SETTLE_S_MAX = 0.1, 30.0
"""How often it is looked whether merges are over, and for how long at most."""


class Driver:
    def __init__(self, backend: Backend, engine: MarkerEngine) -> None:
        self._backend = backend
        self._engine = engine

    async def reading(self, _asked: Told) -> Told:
        return asdict(self._engine.statistics())

    async def settle(self, asked: Told) -> Told:
        """Merges run beside the flushes and go on after the last: until nothing was put for a while."""
        puts = -1
        with anyio.move_on_after(SETTLE_S_MAX):
            while puts != (puts := self._engine.statistics().puts):  # noqa: ASYNC110 nobody tells when merges are over
                await anyio.sleep(max(SETTLE_S, 4 * (self._engine.statistics().put_s or 0.0)))
        return await self._left(asked["instant"])

    async def delete(self, asked: Told) -> Told:
        began = time.perf_counter()
        await self._engine.directory(asked["instant"]).delete()
        took_s = time.perf_counter() - began
        self._engine.forget(asked["instant"])
        left = [entry async for entry in self._backend.list(marker_folder(asked["instant"]))]
        assert not left, f"{len(left)} objects are left"
        return {"deleted_s": took_s}

    async def _left(self, instant: str) -> Told:
        folder = marker_folder(instant)
        names = [entry.path.removeprefix(f"{folder}/") async for entry in self._backend.list(folder)]
        return {"objects": len(names), "segments": sum(map(is_segment, names))}


async def main(lines: TextIO, answers: TextIO) -> None:
    told: Told = json.loads(lines.readline())
    backend = open_backend(told["table"], options=options_of(told))
    async with open_marker_engine(backend, MarkerSettings(**told.get("settings", {}))) as engine:
        secret = secrets.token_bytes(32)
        server = JobServer(secret, ServiceSettings(), MarkerHandler(engine))
        async with anyio.create_task_group() as tasks:
            host, port = await tasks.start(server.run)
            answer(answers, {"host": host, "port": port})
            await _serve(Driver(backend, engine), secret, lines, answers)
            tasks.cancel_scope.cancel()


async def _serve(driver: Driver, secret: bytes, lines: TextIO, answers: TextIO) -> None:
    async def key(asked: Told) -> Told:
        return {"job_key": job_key(secret, asked["instant"]).hex()}

    verbs: dict[str, Callable[[Told], Awaitable[Told]]] = {
        "key": key,
        "reading": driver.reading,
        "settle": driver.settle,
        "delete": driver.delete,
    }
    while line := await anyio.to_thread.run_sync(lines.readline):
        [(verb, asked)] = json.loads(line).items()
        answer(answers, await verbs[verb](asked))


def answer(answers: TextIO, fields: Told) -> None:
    answers.write(json.dumps(fields) + "\n")
    answers.flush()


if __name__ == "__main__":
    anyio.run(functools.partial(main, sys.stdin, sys.stdout), backend="trio")
