"""What a service releases when it has reached its memory limit, and what its estimates are worth."""

import gc
import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import anyio
import pytest

from tallymark.backends.memory import MemoryBackend
from tallymark.engine.errors import Overloaded
from tallymark.engine.markers.engine import MarkerEngine, open_marker_engine
from tallymark.engine.serve.memory import CHECK_S, INSTANT_BYTES, MARKER_BYTES, RECENT_S, Memory
from tallymark.engine.serve.served_instants import ServedInstant, ServedInstants
from tallymark.engine.settings import MarkerSettings
from tests.support.loops import on_both_loops, on_virtual_time

INSTANT = "20261124101500000"


class Things:
    """Things of given sizes in a memory."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.sizes: dict[str, int] = {}
        self.needed: set[str] = set()

    def add(self, name: str, size: int) -> None:
        self.memory.check_room()
        self.sizes[name] = size
        self.memory.add(name, lambda: self.sizes[name], lambda: self._release(name))

    def use(self, *names: str) -> None:
        for name in names:
            self.memory.used(name)

    def _release(self, name: str) -> None:
        if name not in self.needed:
            self.memory.forget(name)
            del self.sizes[name]


@on_virtual_time
async def test_the_least_recently_used_goes_first_and_what_requests_need_stays():
    things = Things(Memory(100))
    for name in "abcd":
        things.add(name, 25)
    things.use("a", "b", "c", "d", "b")
    things.needed = {"a"}
    things.sizes["d"] += 1
    await anyio.sleep(CHECK_S)
    things.use("b")
    assert [*things.sizes] == ["a", "b", "d"]


@on_virtual_time
async def test_what_grows_is_noticed_within_a_second_and_stays_for_the_request_that_has_made_it_grow():
    things = Things(Memory(100))
    things.add("a", 10)
    things.add("b", 10)
    things.sizes["b"] = 1000
    things.use("b")
    assert {*things.sizes} == {"a", "b"}
    await anyio.sleep(CHECK_S)
    things.use("b")
    assert {*things.sizes} == {"b"}
    things.add("c", 10)
    assert {*things.sizes} == {"c"}


@on_virtual_time
async def test_nothing_is_added_while_requests_need_everything():
    things = Things(Memory(100 << 20))
    things.add("a", 101 << 20)
    things.needed = {"a"}
    with pytest.raises(Overloaded, match="memory limit of 100 MiB"):
        things.add("b", 1)
    things.needed.clear()
    things.add("b", 1)
    assert {*things.sizes} == {"b"}


@on_virtual_time
async def test_a_release_that_takes_others_along_counts_them():
    things = Things(Memory(100))
    for name, size in (("table", 10), ("instant", 85), ("other", 4)):
        things.add(name, size)
    release = things.memory._held["table"].release

    def with_its_instant() -> None:
        release()
        things.memory.forget("instant")
        del things.sizes["instant"]

    things.memory._held["table"] = replace(things.memory._held["table"], release=with_its_instant)
    things.sizes["other"] = 40
    await anyio.sleep(CHECK_S)
    things.use("other")
    things.add("new", 1)
    assert [*things.sizes] == ["other", "new"]


@on_virtual_time
async def test_an_instant_that_was_used_a_minute_ago_is_released_and_no_earlier():
    async with open_marker_engine(MemoryBackend(), MarkerSettings(interval_s=0)) as engine:
        served = ServedInstants(engine, Memory(INSTANT_BYTES), serving_by(engine))
        for number in range(2):
            with served.get(f"{INSTANT}{number}").users.one():
                pass
        await anyio.sleep(RECENT_S - CHECK_S)
        with pytest.raises(Overloaded):
            served.get(f"{INSTANT}2")
        await anyio.sleep(CHECK_S)
        assert served.get(f"{INSTANT}2").instant == f"{INSTANT}2"
        assert served.find(f"{INSTANT}0") is None


def serving_by(engine: MarkerEngine) -> Callable[[str, bool], ServedInstant]:
    async def check(served: ServedInstant) -> None: ...

    return lambda instant, is_again: ServedInstant(engine, instant, check, check)


@on_both_loops
async def test_an_instant_takes_about_what_is_counted_for_it():
    """Within half and twice: the limit is one of estimates."""
    instants, markers = 50, 400
    async with open_marker_engine(MemoryBackend(), MarkerSettings(interval_s=0)) as engine:
        served = ServedInstants(engine, Memory(1 << 40), serving_by(engine))

        async def measured(first: int, marker_count: int) -> tuple[int, int]:
            """Return the bytes of further instants: allocated, and counted."""
            gc.collect()
            before = tracemalloc.get_traced_memory()[0]
            added = [served.get(f"{INSTANT}{number}") for number in range(first, first + instants)]
            for one in added:
                names = [f"month=5/{'x' * 110}_{number:06}.parquet" for number in range(marker_count)]
                await one.directory.create(*names)
            del names
            gc.collect()
            return tracemalloc.get_traced_memory()[0] - before, sum(one.memory_bytes for one in added)

        tracemalloc.start()
        try:
            few, _ = await measured(0, 1)
            many, counted = await measured(instants, markers)
        finally:
            tracemalloc.stop()
    assert counted == instants * (INSTANT_BYTES + markers * MARKER_BYTES)
    assert 0.5 < few / (instants * INSTANT_BYTES) < 2, few / instants
    assert 0.5 < (many - few) / (instants * (markers - 1) * MARKER_BYTES) < 2, (many - few) / instants / markers
