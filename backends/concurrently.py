"""One action on many items, a bounded number at a time."""

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import anyio

T = TypeVar("T")


async def concurrently(act: Callable[[T], Awaitable[object]], items: Iterable[T], *, limit: int) -> None:
    """Run the action on every item. The first error stops those that have not started, and is raised bare."""
    items = list(items)
    if len(items) == 1:  # as usual for storage; a task group would take half as long as a request to a near store
        await act(items[0])
        return
    limiter = anyio.CapacityLimiter(limit)
    failed: list[Exception] = []

    async def run(item: T) -> None:
        async with limiter:
            if failed:
                return
            try:
                await act(item)
            except Exception as error:  # leaves below, not in a group
                failed.append(error)

    async with anyio.create_task_group() as tasks:
        for item in items:
            tasks.start_soon(run, item)
    if failed:
        raise failed[0]


async def at_once(*acts: Callable[[], Awaitable[object]]) -> None:
    """Run these actions concurrently. Errors as in ``concurrently``."""
    await concurrently(lambda act: act(), acts, limit=len(acts))
