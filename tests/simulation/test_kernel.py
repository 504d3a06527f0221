"""That the simulated world is what it says: one order of events a seed, free time, processes that can be stopped."""

import os
import subprocess
import sys

import anyio
import pytest
import trio

from tests.simulation.kernel import Kernel, Stuck
from tests.simulation.process import Process
from tests.support.process import ROOT


def run(main, *, seed: int = 0) -> Kernel:
    kernel = Kernel(seed)
    kernel.run(lambda: main(kernel))
    return kernel


def order_of_five(seed: int) -> list[int]:
    order: list[int] = []

    async def main(_: Kernel) -> None:
        async def append(number: int) -> None:
            await trio.lowlevel.checkpoint()
            order.append(number)

        async with trio.open_nursery() as nursery:
            for number in range(5):
                nursery.start_soon(append, number)

    run(main, seed=seed)
    return order


def test_the_seed_decides_the_order_of_what_can_run_at_once():
    assert order_of_five(1) == order_of_five(1)
    assert len({tuple(order_of_five(seed)) for seed in range(30)}) > 10


def test_time_goes_on_when_nothing_can_run():
    async def main(kernel: Kernel) -> None:
        await anyio.sleep(3600)
        assert trio.current_time() == kernel.now == 3600

    assert run(main).now == 3600


def test_events_of_the_world_come_in_the_order_of_their_time():
    came: list[tuple[str, float]] = []

    async def main(kernel: Kernel) -> None:
        kernel.after(2.0, lambda: came.append(("second", kernel.now)))
        kernel.after(1.0, lambda: came.append(("first", kernel.now)))
        await trio.sleep(1.5)
        assert came == [("first", 1.0)]
        await trio.sleep(1.5)

    run(main)
    assert came == [("first", 1.0), ("second", 2.0)]


def test_whoever_waits_for_ever_is_told_of():
    async def main(_: Kernel) -> None:
        await trio.sleep_forever()

    with pytest.raises(Stuck, match="not over after"):
        run(main)


def test_a_stopped_process_takes_no_step_and_finds_its_timers_run_out():
    steps: list[float] = []
    process = Process("p", host="h", pid=1)

    async def tick() -> None:
        while trio.current_time() < 101:
            await trio.sleep(1)
            steps.append(trio.current_time())

    async def main(kernel: Kernel) -> None:
        kernel.at(2.5, process.stop)
        kernel.at(100.0, process.go_on)
        async with trio.open_nursery() as nursery:
            process.start(nursery, tick)

    run(main)
    assert steps == [1, 2, 100, 101]


def test_a_killed_process_takes_no_step_any_more_and_handles_nothing():
    handled: list[str] = []
    process = Process("p", host="h", pid=1)

    async def work() -> None:
        try:
            await trio.sleep(5)
            handled.append("worked")
        finally:
            if not process.is_closed:
                handled.append("cleaned up")

    async def main(kernel: Kernel) -> None:
        kernel.at(2.0, process.kill)
        async with trio.open_nursery() as nursery:
            process.start(nursery, work)
            await process.has_ended.wait()
            assert kernel.now == 2.0
            await trio.sleep(10)
            nursery.cancel_scope.cancel()
            process.close()

    run(main)
    assert handled == []


@pytest.mark.parametrize("what", ["kill", "stop"])
def test_a_process_can_be_disturbed_between_any_two_steps(what):
    """Wherever it happens, what was done before it is done, and nothing after it."""
    seen = set()
    for step in range(1, 20):
        done: list[int] = []
        process = Process("p", host="h", pid=1)

        async def work(done: list[int] = done) -> None:
            for number in range(10):
                await trio.lowlevel.checkpoint()
                done.append(number)

        async def main(_: Kernel, process: Process = process, step: int = step, work=work) -> None:
            process.at_step(step, getattr(process, what))
            async with trio.open_nursery() as nursery:
                process.start(nursery, work)
                await trio.sleep(1)
                process.close()
                nursery.cancel_scope.cancel()

        at_the_end: list[int] = []
        run(main)
        at_the_end += done
        seen.add(len(at_the_end))
    assert len(seen) > 5


TRACE = """
import logging
logging.disable()
from tests.simulation.plan import draw
from tests.simulation.world import run
for seed in {seeds}:
    print(run(draw(seed)).history)
"""


def trace(hash_seed: str, *seeds: int) -> str:
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", TRACE.format(seeds=list(seeds))],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
    ).stdout


WITH_MANY_PEERS = (47, 72, 152, 455, 516, 544, 553, 954, 1004, 1357, 1369)
"""Servers and their queues end amid several connections and flushes: an order by addresses shows here."""


@pytest.mark.slow
def test_the_same_seed_gives_the_same_trace_in_another_process():
    seeds = (*range(40), *WITH_MANY_PEERS)
    assert trace("1", *seeds) == trace("2", *seeds)
