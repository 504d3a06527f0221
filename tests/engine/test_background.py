"""Which error leaves a block that has background tasks."""

import anyio
import pytest

from tallymark.engine.background import background_tasks
from tallymark.engine.errors import RolledBack
from tests.support.loops import on_both_loops


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
