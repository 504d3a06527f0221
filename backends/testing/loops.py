"""Async tests as ordinary ones, on the event loop that they are named after."""

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Sequence

import anyio
import trio

LOOPS: Sequence[str] = ("trio", "asyncio")


def run_on(loop: str, test: Callable[[], Awaitable[None]], *, s_max: float) -> None:
    """Run the test; it fails if it does not end within ``s_max`` seconds, or does not run on that loop."""

    async def main() -> None:
        assert _is_running(loop)
        with anyio.fail_after(s_max):
            await test()

    anyio.run(main, backend=loop)


def with_loop(run: Callable[..., None], test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Return ``run`` under the name and with the arguments of ``test``, and an argument ``loop``."""
    functools.update_wrapper(run, test)
    signature = inspect.signature(test)
    loop = inspect.Parameter("loop", inspect.Parameter.KEYWORD_ONLY)
    run.__signature__ = signature.replace(parameters=[*signature.parameters.values(), loop])  # type: ignore[attr-defined]
    return run


def _is_running(loop: str) -> bool:
    if trio.lowlevel.in_trio_run():
        return loop == "trio"
    return loop == "asyncio" and asyncio.get_running_loop().is_running()
