"""Threads for a vendor's blocking calls."""

import threading

import anyio
import pytest

from tallymark.backends.threads import Threads
from tests.support.loops import on_both_loops


@on_both_loops
async def test_no_more_calls_run_at_once_than_allowed():
    threads, gate, running, most = Threads(2), threading.Semaphore(0), set(), []

    def call(number):
        running.add(number)
        most.append(len(running))
        gate.acquire(timeout=30)
        running.discard(number)

    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(threads.run, call, number)
        with anyio.move_on_after(0.05):
            await anyio.sleep_forever()
        gate.release(5)
    assert len(most) == 5
    assert max(most) == 2


@on_both_loops
async def test_a_call_gives_its_result_or_raises_its_error():
    threads = Threads(1)
    assert await threads.run(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        await threads.run(divmod, 7, 0)


@on_both_loops
async def test_who_is_cancelled_does_not_wait_for_the_call():
    threads, gate = Threads(1), threading.Event()
    with anyio.move_on_after(0.01) as scope:
        await threads.run(gate.wait, 30)
    assert scope.cancelled_caught
    gate.set()


@on_both_loops
async def test_a_store_that_hangs_leaves_another_its_threads():
    hanging, other, gate = Threads(1), Threads(1), threading.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(hanging.run, gate.wait, 30)
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(20):
            assert await other.run(abs, -1) == 1
        gate.set()


def test_one_backend_may_serve_one_loop_after_another():
    threads = Threads(1)
    assert [anyio.run(threads.run, abs, -number, backend="trio") for number in (1, 2)] == [1, 2]
