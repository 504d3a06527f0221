"""Requests that came together: each ends as if it had come alone."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import anyio
import anyio.lowlevel
import pytest
import trio

from tallymark.engine.errors import FlushFailed, InvalidRequest, Overloaded, RolledBack, Sealed
from tallymark.engine.markers import MarkerAnswer, MarkerDirectory
from tallymark.engine.markers.segment import encode_segment
from tests.engine.markers.recorded import SEGMENTS, stored
from tests.engine.markers.scene import marker_scene
from tests.support.faulty import slow
from tests.support.loops import on_virtual_time

CREATED, EXISTED = MarkerAnswer.CREATED, MarkerAnswer.EXISTED
NEW = (CREATED,)


@dataclass(frozen=True)
class Request:
    paths: tuple[str, ...]
    io: str = "CREATE"


def asks(*paths: str) -> list[Request]:
    return [Request((path,)) for path in paths]


@dataclass
class Told:
    """What was told of each path, when, and in how many tellings."""

    outcomes: dict[str, object] = field(default_factory=dict)
    at: dict[str, float] = field(default_factory=dict)
    tellings: int = 0

    async def settle(self, outcomes: Sequence[tuple[Request, object]]) -> None:
        self.tellings += 1
        for request, outcome in outcomes:
            assert request.paths[0] not in self.outcomes
            self.outcomes[request.paths[0]] = type(outcome) if isinstance(outcome, Exception) else outcome
            self.at[request.paths[0]] = trio.current_time()


async def told_of(directory: MarkerDirectory, requests: Sequence[Request]) -> Told:
    told = Told()
    await directory.create_many(requests, told.settle)
    return told


@on_virtual_time
async def test_they_travel_in_one_segment_and_are_told_at_once():
    async with marker_scene() as scene:
        told = await told_of(scene.directory, [*asks("a", "b"), Request(("c", "d"), "MERGE")])
        assert told.outcomes == {"a": (CREATED,), "b": (CREATED,), "c": (CREATED, CREATED)}
        assert told.tellings == 1
        assert (scene.statistics.requests, scene.statistics.batches_flushed) == (3, 1)
    lines = ["a.marker.CREATE", "b.marker.CREATE", "c.marker.MERGE", "d.marker.MERGE"]
    assert encode_segment(lines) in (await stored(scene.storage)).values()


@pytest.mark.parametrize(
    ("requests", "outcomes"),
    [
        ([Request(("a", "x")), Request(("b", "x"))], [(CREATED, CREATED), (CREATED, EXISTED)]),
        ([*asks("good", "../bad"), Request(("odd",), "DELETE")], [NEW, InvalidRequest, InvalidRequest]),
        ([*asks("a"), Request(("b", "x", "y")), *asks("d", "e", "f")], [NEW, Overloaded, NEW, NEW, Overloaded]),
    ],
    ids=["one of two creates the same marker", "a bad path", "room for some"],
)
@on_virtual_time
async def test_each_is_answered_or_refused_by_itself(requests, outcomes):
    async with marker_scene(queue_limit=3) as scene:
        told = await told_of(scene.directory, requests)
        assert told.outcomes == {request.paths[0]: outcome for request, outcome in zip(requests, outcomes, strict=True)}
        assert scene.statistics.refusals == outcomes.count(Overloaded)


@on_virtual_time
async def test_none_waits_for_a_flush_that_another_waits_for():
    async with marker_scene(slow("put_new", 8.0, SEGMENTS, nth=2), interval_s=0, hedge_quantile=None) as scene:
        await scene.directory.create("durable")
        async with anyio.create_task_group() as scene.tasks:
            scene.tasks.start_soon(scene.directory.create, "slow")
            await anyio.sleep(1)
            told = await told_of(scene.directory, asks("slow", "new", "durable", "../bad"))
    assert told.outcomes == {"slow": (EXISTED,), "new": (CREATED,), "durable": (EXISTED,), "../bad": InvalidRequest}
    assert told.at == {"slow": 8.0, "new": 1.0, "durable": 1.0, "../bad": 1.0}


@on_virtual_time
async def test_the_instant_is_looked_at_after_the_flush_and_once_for_all_who_waited_for_it():
    looks: list[float] = []

    async def rolled_back() -> None:
        looks.append(trio.current_time())
        raise RolledBack("the log says so")

    async with marker_scene(slow("put_new", 2.0, SEGMENTS), check_open=rolled_back) as scene:
        told = await told_of(scene.directory, asks("a", "b", "c"))
        assert scene.statistics.refusals == 3
    assert told.outcomes == dict.fromkeys("abc", RolledBack)
    assert looks == [2.0]


@on_virtual_time
async def test_a_seal_refuses_those_that_wait_and_those_that_come():
    told = Told()
    async with marker_scene(slow("put_new", 8.0, SEGMENTS)) as scene:
        scene.tasks.start_soon(scene.directory.create_many, asks("a", "b"), told.settle)
        await anyio.sleep(1)
        scene.directory.seal()
        await anyio.lowlevel.checkpoint()
        await scene.directory.create_many(asks("c", "../bad"), told.settle)
    assert told.outcomes == {"a": Sealed, "b": Sealed, "c": Sealed, "../bad": InvalidRequest}
    assert set(told.at.values()) == {1.0}


@on_virtual_time
async def test_who_is_cancelled_leaves_the_flush_as_it_is():
    told = Told()
    async with marker_scene(slow("put_new", 1.0, SEGMENTS)) as scene:
        with anyio.move_on_after(0.5):
            await scene.directory.create_many(asks("a"), told.settle)
        await anyio.sleep(1)
        assert (told.outcomes, len(await scene.directory.names())) == ({}, 1)


@on_virtual_time
async def test_a_fault_in_the_look_for_one_batch_refuses_what_waited_for_it_and_nothing_else():
    """Two batches: the first is durable after a second, the second after two."""
    looks = 0

    async def fault_at_first() -> None:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise RuntimeError("a fault of ours")

    async with marker_scene(slow("put_new", 1, SEGMENTS), interval_s=0.5, check_open=fault_at_first) as scene:
        with anyio.move_on_after(0.25):
            await scene.directory.create("a/before.parquet")
        assert scene.directory.queue.inflight
        told = await told_of(scene.directory, asks("a/before.parquet", "a/new.parquet"))
    assert told.outcomes == {"a/before.parquet": FlushFailed, "a/new.parquet": (CREATED,)}
