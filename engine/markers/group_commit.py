"""Group commit of one directory's markers: one flush per batch of waiting requests."""

import anyio
from anyio.abc import TaskGroup

from tallymark.engine.errors import Closed, FlushFailed, TallymarkError
from tallymark.engine.markers.batch import MarkerBatch
from tallymark.engine.markers.directory import MarkerDirectory
from tallymark.engine.markers.flush import next_start


async def group_commit(directory: MarkerDirectory, *, worker_count: int) -> None:
    """Flush waiting requests until cancelled; then no request is left waiting."""
    try:
        async with anyio.create_task_group() as tasks:
            directory.hedge.run_in(tasks)
            tasks.start_soon(directory.merge.run)
            _Workers(directory, tasks, worker_count).start_one()
    finally:
        directory.end(Closed("the marker engine was closed"))


class _Workers:
    """Workers of one directory. One waits for a batch, flushes it itself, and leaves its place to the next: between a
    request and its put there is one pass of the event loop.
    """

    def __init__(self, directory: MarkerDirectory, tasks: TaskGroup, count_max: int) -> None:
        self._directory = directory
        self._tasks = tasks
        self._count_max = count_max
        self._count = 0
        self._lead = anyio.Lock(fast_acquire=True)

    def start_one(self) -> None:
        self._count += 1
        self._tasks.start_soon(self._work)

    async def _work(self) -> None:
        while True:
            async with self._lead:
                batch = await self._due_batch()
                if self._directory.pace.is_one_at_a_time:
                    await _carry(self._directory, batch)
                    continue
                if self._count < self._count_max and not self._lead.statistics().tasks_waiting:
                    self.start_one()
            await _carry(self._directory, batch)

    async def _due_batch(self) -> MarkerBatch:
        """Return the waiting markers as a batch when the next flush may start."""
        directory = self._directory
        while True:
            await directory.queue.gather()
            directory.observe_throttling()
            await next_start(directory.pace)
            batch = directory.queue.take()
            if batch is not None:
                directory.pace.started(anyio.current_time())
                return batch


async def _carry(directory: MarkerDirectory, batch: MarkerBatch) -> None:
    started = anyio.current_time()
    try:
        await directory.flush(batch)  # durable
    except TallymarkError as error:
        directory.abandon(batch, error)  # no request was acked
    except Exception as error:  # no store may raise this, and one that does must not end the others' work
        directory.abandon(batch, FlushFailed(f"{directory} could not be written: {error!r}"))
    except BaseException:
        directory.abandon(batch, Closed("the marker engine was closed during the flush"))
        raise
    else:
        directory.observe_throttling()
        directory.pace.measured(anyio.current_time() - started, started=started)
        directory.complete(batch)  # then visible, then answered
