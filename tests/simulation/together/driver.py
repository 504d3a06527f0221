"""Drivers of a stream: producers that number their appends, and repeat what was not acknowledged by a dead driver."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio

from tallymark.backends.errors import TallymarkError
from tallymark.engine.errors import Closed
from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.settings import StreamSettings, TaskSettings
from tallymark.engine.streams.stream import OpenJob, Stream
from tallymark.engine.table import Table
from tests.history import Appended, Befell
from tests.simulation.executor import first_flight, flights, partition_by, schema_of
from tests.simulation.plan import ProducerPlan, StreamPlan
from tests.simulation.process import Process
from tests.simulation.scene import Scene

TRIES_MAX = 8
"""Of a producer in a row, by one driver."""

AGAIN_S = 1.0
"""Until it tries again."""

NAME = "stream0"
"""Of the one stream of a run, and of its first driver."""


class StreamRun:
    """The stream through all of its drivers; what its producers know survives each of them."""

    def __init__(self, scene: Scene, plan: StreamPlan) -> None:
        self._scene = scene
        self._plan = plan
        self._tasks = TaskSettings(row_group_bytes=1, buffer_bytes=1 << 20)
        self._acknowledged: list[set[int]] = [set() for _ in plan.producers]
        self._tried = [-1 for _ in plan.producers]
        """The last append of each that was ever started."""

    async def play(self, opened: Callable[[Process], Table], processes: list[Process]) -> None:
        """Return when its last driver has ended. Add each to the processes. ``opened`` returns the table of one."""
        await trio.sleep(self._plan.start_s)
        for number, mishap in enumerate((*self._plan.mishaps, None)):
            name = f"{NAME}+{number}" if number else NAME
            process = self._scene.process(name, self._plan.host, mishap)
            process.entry_fates = [] if number else list(self._plan.entry_fates)
            processes.append(process)
            self._scene.start(process, self._drive, process, opened(process))
            with trio.move_on_after(self._plan.patience_s if mishap is not None else float("inf")):
                await process.has_ended.wait()
            await trio.sleep(self._plan.pause_s)

    async def _drive(self, process: Process, table: Table) -> None:
        for _ in range(TRIES_MAX):
            try:
                await self._stream(process, table)
            except TallymarkError as error:
                self._scene.note(process, f"opens no stream: {error!r}")
                await trio.sleep(AGAIN_S)
            else:
                return

    async def _stream(self, process: Process, table: Table) -> None:
        plan, retain_hours = self._scene.plan, self._scene.plan.retain_hours
        settings = StreamSettings(
            flush_interval_s=self._plan.interval_s,
            worker_count=self._plan.worker_count,
            target_file_bytes=0,  # what is stored here are no Parquet files, and cannot be merged
        )
        async with table.stream(
            schema=schema_of(plan),
            partition_by=partition_by(plan),
            settings=settings,
            tasks=self._tasks,
            readers="directory" if retain_hours is None else "table",
            retain_hours=retain_hours,
        ) as stream:
            stream._open_job = self._noted(stream._open_job)
            await self._produce_all(process, stream)

    def _noted(self, open_job: OpenJob) -> OpenJob:
        """Note whose the instants of the flushes are."""

        @asynccontextmanager
        async def opened() -> AsyncIterator[WriteJob]:
            async with open_job() as job:
                self._scene.record(Befell, process=NAME, what=f"has instant {job.instant}")
                yield job

        made: OpenJob = opened
        return made

    async def _produce_all(self, process: Process, stream: Stream) -> None:
        async with trio.open_nursery() as nursery:
            for number, plan in enumerate(self._plan.producers):
                nursery.start_soon(self._produce, process, stream, number, plan)

    async def _produce(self, process: Process, stream: Stream, number: int, plan: ProducerPlan) -> None:
        """Append what is left, in order; after a failure go back to the first one that is not acknowledged."""
        acknowledged, tries = self._acknowledged[number], 0
        at = 0 if plan.is_numbered else self._tried[number] + 1
        while at < len(plan.months) and tries < TRIES_MAX:
            if at in acknowledged:
                at += 1
                continue
            started, failed = await self._append_window(process, stream, number, at)
            if stream.ended.is_set():
                return
            at = min(failed) if failed and plan.is_numbered else max(started, default=at) + 1
            tries = tries + 1 if failed else 0
            await trio.sleep(AGAIN_S if failed else 0.0)

    async def _append_window(
        self, process: Process, stream: Stream, number: int, at: int
    ) -> tuple[list[int], list[int]]:
        """Start some appends one after the other. When all have returned, return them, and those that have failed. None
        is started after a failure: committed, it would pass the one before.
        """
        plan = self._plan.producers[number]
        started: list[int] = []
        failed: list[int] = []
        async with trio.open_nursery() as nursery:
            for sequence in range(at, min(at + plan.window, len(plan.months))):
                if not failed and (plan.is_numbered or sequence > self._tried[number]):
                    started.append(sequence)
                    await nursery.start(self._append, process, stream, number, sequence, failed)
                    await trio.sleep(plan.pause_s)
        return started, failed

    async def _append(
        self,
        process: Process,
        stream: Stream,
        number: int,
        sequence: int,
        failed: list[int],
        *,
        task_status: trio.TaskStatus[None],
    ) -> None:
        plan = self._plan.producers[number]
        rows = flights(schema_of(self._scene.plan), first_flight(NAME, number, 0, sequence), plan.months[sequence])
        named: dict[str, Any] = {"producer": f"p{number}", "sequence": sequence} if plan.is_numbered else {}
        self._count("append repeated", sequence <= self._tried[number])
        self._count("repeated append was committed", named and stream._history().last_of(f"p{number}") >= sequence)
        self._tried[number] = max(self._tried[number], sequence)
        task_status.started()  # from here on to its place in the batch no other task runs
        try:
            position = await stream.append(rows, **named)
        except Closed:
            failed.append(sequence)
            return
        except TallymarkError as error:
            failed.append(sequence)
            self._scene.note(process, f"append {sequence} of producer {number} fails: {error!r}")
            self._count("append met its first entry", "has committed batches up to" in str(error))
            self._count("append failed with an earlier one", "an earlier append of the producer" in str(error))
            return
        self._acknowledged[number].add(sequence)
        self._scene.record(Appended, stream=NAME, producer=number, sequence=sequence, position=position)

    def _count(self, what: str, holds: object) -> None:
        self._scene.mishaps[what] += bool(holds)
