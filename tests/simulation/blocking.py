"""Blocking code of the library, such as the task writer, as one of the simulated tasks: without a thread.

The code runs in a greenlet. Where it would block its thread it hands an awaitable to the trio task that carries it,
and continues when that has been awaited.
"""

import math
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, Executor, Future
from functools import partial
from typing import Any, TypeVar

import trio
from anyio.abc import TaskGroup
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


def wait(futures: Iterable["Future[Any]"], timeout: float = math.inf, *, return_when: str = ALL_COMPLETED) -> None:
    """In place of ``concurrent.futures.wait``."""
    waiting = list(futures)
    block_on(until_done(waiting, timeout, count=1 if return_when == FIRST_COMPLETED else len(waiting)))


class BlockingExecutor(Executor):
    """In place of a pool of threads: each call is code in ``run_blocking``, beside the one that submits it."""

    def __init__(self, tasks: TaskGroup) -> None:
        self._tasks = tasks
        self._futures: list[Future[Any]] = []

    def submit(self, code: Callable[..., T], /, *arguments: Any, **named: Any) -> "Future[T]":
        future: Future[T] = Future()
        self._futures.append(future)
        self._tasks.start_soon(self._run, future, partial(code, *arguments, **named))
        return future

    def shutdown(self, wait: bool = True, **_: Any) -> None:
        block_on(until_done(self._futures))

    async def _run(self, future: "Future[Any]", code: Callable[[], Any]) -> None:
        try:
            future.set_result(await run_blocking(code))
        except Exception as error:
            future.set_exception(error)


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


async def until_done(
    futures: Sequence["Future[Any]"], timeout_s: float = math.inf, *, count: int | None = None
) -> None:
    """Return when so many of the futures have settled, all by default, or the time is over."""
    done = trio.Semaphore(0)
    for future in futures:
        future.add_done_callback(lambda _: done.release())
    with trio.move_on_after(timeout_s):
        for _ in range(len(futures) if count is None else count):
            await done.acquire()
