"""The process of some callers who need no connection: each is a task of one event loop, which puts markers of its own
(``direct``), or asks an engine in this process (``inside``).

It is told, and tells, what ``caller`` is.
"""

import functools
import gc
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from random import Random
from typing import TextIO

import anyio
import anyio.to_thread

from tallymark.backends import open_backend
from tallymark.bench.markers.caller import Asked, answer, count_from, next_dues, now, seen
from tallymark.bench.markers.calling import Calling
from tallymark.bench.markers.names import paths
from tallymark.bench.markers.place import options_of
from tallymark.bench.markers.talk import Address
from tallymark.engine.markers import open_marker_engine
from tallymark.engine.markers.direct import create_direct
from tallymark.engine.markers.directory import always_open

Mark = Callable[[str], Awaitable[object]]


@asynccontextmanager
async def _direct(address: Address) -> AsyncIterator[Mark]:
    """An empty object a marker. A task of a job reads the log's next entry and the seal after that, which is left out
    here: what is measured is the put.
    """
    backend = open_backend(address["table"], options=options_of(address))
    yield lambda path: create_direct(backend, address["instant"], [path], always_open)


@asynccontextmanager
async def _inside(address: Address) -> AsyncIterator[Mark]:
    backend = open_backend(address["table"], options=options_of(address))
    async with open_marker_engine(backend) as engine:
        yield engine.directory(address["instant"]).create


_MARKS = {"direct": _direct, "inside": _inside}


async def _call(calling: Calling, names: Iterator[str], mark: Mark) -> None:
    calling.begin(now())
    while calling.due is not None:
        if (left := calling.due - now()) > 0:
            await anyio.sleep(left)
        calling.asked()
        await mark(next(names))
        calling.heard(now())


async def main(lines: TextIO, answers: TextIO) -> None:
    asked: Asked = json.loads(lines.readline())
    address, series = asked["address"], asked["series"]
    async with _MARKS[address["mark"]](address) as mark:
        answer(answers, {"open": asked["connections"]})
        begin = json.loads(await anyio.to_thread.run_sync(lines.readline))["begin"]
        gc.freeze()
        random, names = Random(series), paths(address["instant"], series)  # noqa: S311 no secret
        callings = [Calling(due, count_from(asked, begin)) for due in next_dues(asked, begin, random)]
        await anyio.sleep(max(0.0, begin - now()))
        async with anyio.create_task_group() as tasks:
            for calling in callings:
                tasks.start_soon(_call, calling, names, mark)
    answer(answers, seen(callings, 0))


if __name__ == "__main__":
    anyio.run(functools.partial(main, sys.stdin, sys.stdout), backend="trio")
