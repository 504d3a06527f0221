"""A driver as a program: it overwrites a month of a table with a pool of processes, and is killed where it is told.

    python -m tests.engine.jobs.killed_driver <directory> <mode> <verb> <pattern>

At the first call of that verb with a path that matches the pattern, the driver sends itself SIGKILL: before the call
reaches the disk if the verb begins with "-", else once it has. The pool's processes are left behind, as executors are.
"""

import os
import signal
import sys
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatchcase
from functools import partial
from multiprocessing import get_context
from typing import Any

import anyio
import anyio.to_thread

from tallymark.backends.local import LocalBackend
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.table import open_table
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.tasks.task_writer import write_task
from tallymark.engine.tasks.ticket import WriteTicket
from tests.engine.jobs.scene import FLIGHTS, flights

TASKS = 2


class Killing:
    """A local disk whose user is killed at a chosen call."""

    def __init__(self, inner: LocalBackend, verb: str, pattern: str) -> None:
        self._inner = inner
        self._verb = verb
        self._pattern = pattern

    def __getattr__(self, name: str):
        if name != self._verb.removeprefix("-"):
            return getattr(self._inner, name)
        return self._watched

    async def _watched(self, argument, *more):
        paths = [argument] if isinstance(argument, str) else list(argument)
        is_the_one = any(fnmatchcase(path, self._pattern) for path in paths)
        if is_the_one and self._verb.startswith("-"):
            os.kill(os.getpid(), signal.SIGKILL)
        answer = await getattr(self._inner, self._verb.removeprefix("-"))(argument, *more)
        if is_the_one:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer


def run_task(ticket: WriteTicket, task: int) -> bytes:
    """In a process of the pool."""
    return write_task(ticket, flights({2: 10 * (task + 1)}).to_batches(), task=task).encode()


async def run_tasks(job: WriteJob) -> list[TaskReport]:
    with ProcessPoolExecutor(TASKS, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(run_task, job.ticket, task) for task in range(TASKS)]
        return [TaskReport.decode(await anyio.to_thread.run_sync(future.result)) for future in futures]


async def main(directory: str, mode: Any, verb: str, pattern: str) -> None:
    backend: Any = Killing(LocalBackend(directory), verb, pattern)
    write = open_table(directory, backend=backend).write(
        schema=FLIGHTS, mode=mode, partition_by=["month"], partition_overwrite="dynamic"
    )
    async with write as job:
        await job.commit(await run_tasks(job))


if __name__ == "__main__":
    anyio.run(partial(main, *sys.argv[1:]), backend="trio")
