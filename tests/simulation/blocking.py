"""Blocking code of the library, such as the task writer, as one of the simulated tasks: without a thread.

The code runs in a greenlet. Where it would block its thread it hands an awaitable to the trio task that carries it,
and continues when that has been awaited.
"""

import math
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

import trio
from greenlet import getcurrent, greenlet

T = TypeVar("T")


async def run_blocking(code: Callable[[], T]) -> T:
    """What ``code`` returns or raises; within it ``block_on`` waits."""
    carried = greenlet(code)
    step: Callable[[], Any] = carried.switch
    while True:
        handed = step()
        if carried.dead:
            result: T = handed
            return result
        try:
            value = await handed
        except BaseException as error:  # raised there, where it was waited for
            thrown = error
            step = lambda: carried.throw(thrown)  # noqa: B023, E731  # called before the next round
        else:
            answer = value
            step = lambda: carried.switch(answer)  # noqa: B023, E731


def block_on(awaitable: Awaitable[T]) -> T:
    """To be called by code in ``run_blocking``: wait for it as if it blocked."""
    parent = getcurrent().parent
    assert parent is not None
    value: T = parent.switch(awaitable)
    return value


def wait(futures: Sequence["Future[Any]"], timeout: float = math.inf) -> None:
    """In place of ``concurrent.futures.wait``."""
    block_on(until_done(futures[0], timeout))


class BlockingLoop:
    """In place of ``TaskLoop``, for code in ``run_blocking``: a call has ended when ``start_soon`` returns."""

    def __init__(self, **_: object) -> None:
        pass

    def start_soon(self, act: Callable[[Any], Awaitable[T]], given: Any, /) -> "Future[T]":
        future: Future[T] = Future()
        future.set_result(block_on(act(given)))
        return future

    def close(self) -> None:
        pass


async def until_done(future: "Future[Any]", timeout_s: float) -> None:
    """Return when the future has settled, or the time is over."""
    done = trio.Event()
    future.add_done_callback(lambda _: done.set())
    with trio.move_on_after(timeout_s):
        await done.wait()
