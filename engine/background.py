"""Tasks that live as long as a block, without changing which errors leave it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup


@asynccontextmanager
async def background_tasks() -> AsyncIterator[TaskGroup]:
    """A task group that is cancelled when the block ends.

    The block's own error leaves bare, not wrapped in an exception group: background tasks are an affair of the library,
    not of its callers. If a background task fails, the block is cancelled and that task's error leaves instead, also
    if somebody else cancels the block in that moment.
    """
    own: Exception | None = None
    try:
        async with anyio.create_task_group() as tasks:
            try:
                yield tasks
            except Exception as error:
                own = error
            finally:
                tasks.cancel_scope.cancel()
    except BaseExceptionGroup as failed:
        _, errors = failed.split(anyio.get_cancelled_exc_class())
        if errors is not None and len(errors.exceptions) == 1:
            raise errors.exceptions[0] from own
        raise
    if own is not None:
        raise own
