"""Carry a directory's markers to storage: one flush for all who wait."""

import anyio

from tallymark.engine.errors import Closed, FlushFailed, TallymarkError
from tallymark.engine.markers.batch import MarkerBatch
from tallymark.engine.markers.directory import MarkerDirectory
from tallymark.engine.markers.flush import next_start


async def group_commit(directory: MarkerDirectory, *, worker_count: int) -> None:
    """Flush what waits until cancelled; then nobody is left waiting."""
    free = anyio.Semaphore(worker_count)
    try:
        async with anyio.create_task_group() as workers:
            directory.hedge.run_in(workers)
            workers.start_soon(directory.merge.run)
            while True:
                await directory.queue.gather()
                directory.heed_throttling()
                await next_start(directory.pace)
                await _acquire(free)
                batch = directory.queue.take()
                if batch is None:
                    free.release()
                    continue
                directory.pace.started(anyio.current_time())
                workers.start_soon(_carry, directory, batch, free)
    finally:
        directory.end(Closed("the marker engine was closed"))


async def _acquire(free: anyio.Semaphore) -> None:
    try:
        free.acquire_nowait()
    except anyio.WouldBlock:
        await free.acquire()


async def _carry(directory: MarkerDirectory, batch: MarkerBatch, free: anyio.Semaphore) -> None:
    started = anyio.current_time()
    try:
        await directory.flush(batch)  # durable
    except TallymarkError as error:
        directory.abandon(batch, error)  # nobody was told otherwise
    except Exception as error:  # no store may raise this, and one that does must not end the others' work
        directory.abandon(batch, FlushFailed(f"{directory} could not be written: {error!r}"))
    except BaseException:
        directory.abandon(batch, Closed("the marker engine was closed during the flush"))
        raise
    else:
        directory.heed_throttling()
        directory.pace.measured(anyio.current_time() - started, started=started)
        directory.complete(batch)  # then visible, then answered
    finally:
        free.release()
