"""Lazy values are loaded once for all callers; which error leaves a block that has background tasks."""

import anyio
import anyio.lowlevel
import pytest

from tallymark.engine.background import background_tasks
from tallymark.engine.errors import RolledBack
from tallymark.engine.lazy import Lazy
from tests.support.loops import on_both_loops, on_virtual_time


class Loads:
    """Loads that wait until they are let go."""

    def __init__(self) -> None:
        self.begun = 0
        self.begins = anyio.Event()
        self.go = anyio.Event()

    async def __call__(self) -> str:
        self.begun += 1
        number = self.begun
        self.begins.set()
        await self.go.wait()
        return f"load {number}"


@on_both_loops
async def test_nothing_is_loaded_before_the_first_asks():
    loads = Loads()
    loads.go.set()
    lazy = Lazy(loads)
    assert loads.begun == 0
    assert await lazy.get() == "load 1"
    assert await lazy.get() == "load 1"
    assert loads.begun == 1


@on_both_loops
async def test_all_who_ask_meanwhile_wait_for_the_same_load_and_go_on_together_not_one_after_the_other():
    loads = Loads()
    lazy = Lazy(loads)
    answers = []

    async def ask() -> None:
        answers.append(await lazy.get())

    async with anyio.create_task_group() as group:
        for _ in range(1000):
            group.start_soon(ask)
        await loads.begins.wait()
        await anyio.wait_all_tasks_blocked()
        assert answers == []
        loads.go.set()
        for _ in range(3):  # passes of the event loop: the loader's, that of those who wait, one more
            await anyio.lowlevel.checkpoint()
        assert answers == ["load 1"] * 1000


@pytest.mark.parametrize(("leaves", "loads_begun"), [("first", 2), ("second", 1)], ids=["the loader", "a waiter"])
@on_both_loops
async def test_a_cancelled_caller_leaves_the_load_to_the_other(leaves: str, loads_begun: int):
    loads = Loads()
    lazy = Lazy(loads)
    answers = []
    scopes = {"first": anyio.CancelScope(), "second": anyio.CancelScope()}

    async def ask(scope: anyio.CancelScope) -> None:
        with scope:
            answers.append(await lazy.get())

    async with anyio.create_task_group() as group:
        for scope in scopes.values():
            group.start_soon(ask, scope)
            await anyio.wait_all_tasks_blocked()
        scopes[leaves].cancel()
        await anyio.wait_all_tasks_blocked()
        assert loads.begun == loads_begun
        loads.go.set()
    assert answers == [f"load {loads_begun}"]


@on_virtual_time
async def test_a_load_that_fails_fails_for_all_who_waited_for_it_and_none_of_them_loads_again():
    """Else the last of many would wait for as many loads, one after the other."""
    loads: list[float] = []

    async def load() -> int:
        loads.append(anyio.current_time())
        await anyio.sleep(5)
        if len(loads) < 3:
            raise OSError("silence")
        return len(loads)

    value = Lazy(load)
    failed_at: list[float] = []

    async def ask() -> None:
        with pytest.raises(OSError, match="silence"):
            await value.get()
        failed_at.append(anyio.current_time())

    async with anyio.create_task_group() as askers:
        for _ in range(20):
            askers.start_soon(ask)
    assert (loads, failed_at) == ([0.0], [5.0] * 20)
    await ask()
    assert await value.get() == 3, "each who asks later has another try"
    assert loads == [0.0, 5.0, 10.0]


async def fail() -> None:
    raise RolledBack("by another writer")


@on_both_loops
async def test_the_blocks_own_error_leaves_bare():
    with pytest.raises(ZeroDivisionError):  # noqa: PT012
        async with background_tasks() as background:
            background.start_soon(anyio.sleep_forever)
            raise ZeroDivisionError


@on_both_loops
async def test_a_background_tasks_error_leaves_bare_and_cancels_the_block():
    with pytest.raises(RolledBack):  # noqa: PT012
        async with background_tasks() as background:
            background.start_soon(fail)
            await anyio.sleep_forever()


@on_both_loops
async def test_it_leaves_bare_also_where_the_block_is_cancelled_from_outside_at_that_moment():
    with pytest.raises(RolledBack), anyio.CancelScope() as scope:  # noqa: PT012
        async with background_tasks() as background:

            async def cancel_and_fail() -> None:
                scope.cancel()
                await fail()

            background.start_soon(cancel_and_fail)
            await anyio.sleep_forever()


@on_both_loops
async def test_two_that_fail_at_once_leave_as_a_group():
    with pytest.raises(ExceptionGroup) as failed:  # noqa: PT012
        async with background_tasks() as background:
            background.start_soon(fail)
            background.start_soon(fail)
            await anyio.sleep_forever()
    assert [type(error) for error in failed.value.exceptions] == [RolledBack, RolledBack]


@on_both_loops
async def test_a_cancelled_block_ends_its_background_tasks_and_raises_nothing_else():
    with anyio.CancelScope() as scope:
        async with background_tasks() as background:
            background.start_soon(anyio.sleep_forever)
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
