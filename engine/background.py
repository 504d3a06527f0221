"""Background tasks that end with a block and do not change which errors it raises."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from anyio.abc import TaskGroup


@asynccontextmanager
async def background_tasks() -> AsyncIterator[TaskGroup]:
    """Run a task group that is cancelled when the block ends.

    The block's error is raised bare, not wrapped in an exception group: background tasks are internal to the library.
    If a background task fails, the block is cancelled and that task's error is raised instead, even if the caller
    cancels the block at that moment.
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
