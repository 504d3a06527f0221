"""The process of one view that is held in it: how long until it answers, by how much the process grows, what it takes
to ask and to follow commits.

Each line of JSON that comes in has one key, and is answered by a line:

    warm    open another view of this kind first, so that what is imported and grown once is not counted
    open    from nothing to the answers for one partition, and for all
    ask     questions, one after the other
    follow  a commit that is there: until an answer for one of its partitions has it
"""

import functools
import gc
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, TextIO

import anyio

from tallymark.bench.views.held import Held, Spec, held
from tallymark.bench.views.lookup import Lookup

now = time.perf_counter

Asked = Any
"""What stands under the key."""


class Holder:
    def __init__(self) -> None:
        self._held: Held | None = None

    async def warm(self, asked: Asked) -> dict[str, object]:
        view, lookup = held(asked["view"]), Lookup(*asked["lookup"])
        await view.open()
        await view.load_all()
        await view.ask(lookup)
        await view.sync()
        view.close()
        return {}

    async def open(self, asked: Asked) -> dict[str, object]:
        gc.collect()
        before, began = resident_bytes(), now()
        view = held(_spec_of(asked))
        await view.open()
        await view.ask(Lookup(*asked["lookup"]))
        first_s = now() - began
        await view.load_all()
        ready_s = now() - began
        gc.collect()
        self._held = view
        return {"first_s": first_s, "ready_s": ready_s, "grown_bytes": resident_bytes() - before}

    async def ask(self, asked: Asked) -> dict[str, object]:
        wanted = [Lookup(*fields) for fields in asked["lookups"]]
        return {"latency_s": await _in_turn(self.view, wanted, asked["seconds"])}

    async def follow(self, asked: Asked) -> dict[str, object]:
        lookup = Lookup(*asked["lookup"])
        began = now()
        await self.view.sync()
        synced_s = now() - began
        answer = await self.view.ask(lookup)
        answered_s = now() - began
        assert len(answer) >= lookup.files, f"{lookup} was answered with {len(answer)} files"
        return {"synced_s": synced_s, "answered_s": answered_s}

    @property
    def view(self) -> Held:
        assert self._held is not None, "it is opened first"
        return self._held


async def _in_turn(view: Held, wanted: Sequence[Lookup], seconds: float) -> list[float]:
    found, began = [], now()
    for lookup in cycle(wanted):
        sent = now()
        answer = await view.ask(lookup)
        done = now()
        assert len(answer) >= lookup.files, f"{lookup} was answered with {len(answer)} files"
        found.append(done - sent)
        if done - began > seconds:
            return found
    raise AssertionError("there are questions")


def _spec_of(asked: Asked) -> Spec:
    spec: Spec = asked["view"]
    return spec


def resident_bytes() -> int:
    """Of this process, in memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def main(lines: TextIO, answers: TextIO) -> None:
    """Until the lines end."""
    holder = Holder()
    verbs: dict[str, Callable[[Asked], Awaitable[dict[str, object]]]] = {
        "warm": holder.warm,
        "open": holder.open,
        "ask": holder.ask,
        "follow": holder.follow,
    }
    for line in lines:
        [(verb, asked)] = json.loads(line).items()
        answers.write(json.dumps(await verbs[verb](asked)) + "\n")
        answers.flush()


if __name__ == "__main__":
    anyio.run(functools.partial(main, sys.stdin, sys.stdout), backend="trio")
