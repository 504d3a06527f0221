"""Process of a driver: the marker engine behind a job's service, and nothing else.

The first line of JSON names the store and the settings; the response is the address. Each line after that has one key:

    key       the key of an instant
    reading   what the engine, the store in memory and the service have counted so far
    settle    what the folder of an instant contains once merges have ended
    delete    the seconds that it took to delete the markers of an instant

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
from tallymark.bench.child import answer
from tallymark.bench.markers.memory import SlowMemory, constant
from tallymark.bench.stores import options_of
from tallymark.engine.markers import MarkerEngine, open_marker_engine
from tallymark.engine.markers.segment import is_segment, marker_folder
from tallymark.engine.rpc.dispatcher import MarkerHandler
from tallymark.engine.rpc.handshake import job_key
from tallymark.engine.rpc.server import JobServer
from tallymark.engine.settings import MarkerSettings, ServiceSettings

Fields = dict[str, Any]

SETTLE_S, SETTLE_S_MAX = 0.1, 30.0
"""Interval at which the count of puts is read until merges have ended, and the longest wait for that."""


class Driver:
    def __init__(self, backend: Backend, engine: MarkerEngine, server: JobServer, secret: bytes) -> None:
        self._backend = backend
        self._engine = engine
        self._server = server
        self._secret = secret

    async def key(self, asked: Fields) -> Fields:
        return {"job_key": job_key(self._secret, asked["instant"]).hex()}

    async def reading(self, _asked: Fields) -> Fields:
        memory = self._backend
        puts = {"store_puts": memory.puts, "store_puts_s": memory.puts_s} if isinstance(memory, SlowMemory) else {}
        counted = asdict(self._engine.statistics())
        return {**counted, **puts, "served": self._server.statistics().requests, "cpu_s": time.process_time()}

    async def settle(self, asked: Fields) -> Fields:
        puts = -1
        with anyio.move_on_after(SETTLE_S_MAX):
            while puts != (puts := self._engine.statistics().puts):  # noqa: ASYNC110 merges end without an event
                await anyio.sleep(max(SETTLE_S, 4 * (self._engine.statistics().put_s or 0.0)))
        folder = marker_folder(asked["instant"])
        names = [entry.path.removeprefix(f"{folder}/") async for entry in self._backend.list(folder)]
        return {"objects": len(names), "segments": sum(map(is_segment, names))}

    async def delete(self, asked: Fields) -> Fields:
        started = time.perf_counter()
        await self._engine.directory(asked["instant"]).delete()
        took_s = time.perf_counter() - started
        self._engine.forget(asked["instant"])
        left = [entry async for entry in self._backend.list(marker_folder(asked["instant"]))]
        assert not left, f"{len(left)} objects are left"
        return {"deleted_s": took_s}


async def main(lines: TextIO, answers: TextIO) -> None:
    asked: Fields = json.loads(lines.readline())
    backend: Backend
    if "put_s" in asked:
        backend = SlowMemory(constant(asked["put_s"]))
    else:
        backend = open_backend(asked["table"], options=options_of(asked))
    async with open_marker_engine(backend, MarkerSettings(**asked.get("settings", {}))) as engine:
        secret = secrets.token_bytes(32)
        server = JobServer(secret, ServiceSettings(), MarkerHandler(engine))
        async with anyio.create_task_group() as tasks:
            host, port = await tasks.start(server.run)
            answer(answers, {"host": host, "port": port})
            driver = Driver(backend, engine, server, secret)
            verbs: dict[str, Callable[[Fields], Awaitable[Fields]]] = {
                "key": driver.key,
                "reading": driver.reading,
                "settle": driver.settle,
                "delete": driver.delete,
            }
            while line := await anyio.to_thread.run_sync(lines.readline):
                [(verb, fields)] = json.loads(line).items()
                answer(answers, await verbs[verb](fields))
            tasks.cancel_scope.cancel()


if __name__ == "__main__":
    anyio.run(functools.partial(main, sys.stdin, sys.stdout), backend="trio")
