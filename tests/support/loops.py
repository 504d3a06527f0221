"""Run an async test on both event loops, or on trio's virtual clock."""

import functools
from collections.abc import Awaitable, Callable, Sequence

import pytest
import trio
import trio.testing

from tallymark.backends.testing.loops import LOOPS, run_on, with_loop

REAL_S_MAX = 240
"""Seconds after which a test on a real loop fails that would wait for ever."""

VIRTUAL_S_MAX = 1e6
"""The same on virtual time: beyond every timeout there is."""


def on_both_loops(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """The async test as two ordinary ones, which fail if they do not run on the loop they are named after."""

    return _on(LOOPS, test)


def on_trio_first(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """As ``on_both_loops``, for a test of seconds in which the store decides: asyncio is left to a release."""
    return _on(["trio", pytest.param("asyncio", marks=pytest.mark.release)], test)


def _on(loops: Sequence[object], test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    def run(*arguments: object, loop: str, **named: object) -> None:
        run_on(loop, functools.partial(test, *arguments, **named), s_max=REAL_S_MAX)

    each: Callable[..., None] = pytest.mark.parametrize("loop", loops)(with_loop(run, test))
    return each


def on_virtual_time(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """The async test on trio with a clock that starts at 0 and jumps ahead whenever all tasks wait.

    Calls that wait in worker threads do not hold that clock back: use it with MemoryBackend.
    """

    @functools.wraps(test)
    def run(*arguments: object, **named: object) -> None:
        async def main() -> None:
            with trio.fail_after(VIRTUAL_S_MAX):
                await test(*arguments, **named)

        trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))

    return run
