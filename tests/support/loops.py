"""Run an async test on both event loops, or on trio's virtual clock."""

import functools
import inspect
from collections.abc import Awaitable, Callable

import anyio
import pytest
import sniffio
import trio
import trio.testing

LOOPS = ("trio", "asyncio")

REAL_S_MAX = 60
"""Seconds after which a test on a real loop fails that would wait for ever."""

VIRTUAL_S_MAX = 1e6
"""The same on virtual time: beyond every timeout there is."""


def on_both_loops(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """The async test as two ordinary ones, which fail if they do not run on the loop they are named after."""

    @functools.wraps(test)
    def run(*arguments: object, loop: str, **named: object) -> None:
        async def main() -> None:
            assert sniffio.current_async_library() == loop
            with anyio.fail_after(REAL_S_MAX):
                await test(*arguments, **named)

        anyio.run(main, backend=loop)

    asked = inspect.signature(test)
    loop = inspect.Parameter("loop", inspect.Parameter.KEYWORD_ONLY)
    run.__signature__ = asked.replace(parameters=[*asked.parameters.values(), loop])  # type: ignore[attr-defined]
    both: Callable[..., None] = pytest.mark.parametrize("loop", LOOPS)(run)
    return both


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
