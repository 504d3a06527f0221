"""The engine that runs a job's tasks, and one attempt of one of them.

The engine is the least that Spark and its like do: attempts in processes of their own, one of which is the winner of
its task; reports that reach the driver some time later; losers that are not stopped.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

import pyarrow as pa
import trio
from anyio.abc import TaskGroup

from tallymark.backends.errors import NotFound, TallymarkError
from tallymark.engine.background import background_tasks
from tallymark.engine.markers.direct_flag import DirectFlag
from tallymark.engine.markers.name import MarkerIo
from tallymark.engine.rpc.circuit_breaker import Outage
from tallymark.engine.sizing import PlannedFile
from tallymark.engine.tasks.marker_sources import DirectMarkers, FallbackMarkers, MarkerSource
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.tasks.task_writer import TaskWriter
from tallymark.engine.tasks.ticket import WriteTicket
from tests.simulation.blocking import BlockingExecutor, block_on, run_blocking, until_done
from tests.simulation.client import Client
from tests.simulation.keyed.rows import key_of, order_of
from tests.simulation.plan import YEARS, AttemptPlan, Plan, TaskPlan
from tests.simulation.process import Process
from tests.simulation.scene import Scene
from tests.simulation.shared.service import spread
from tests.simulation.storage import Port

ROWS = 2
"""In each batch."""

ASTRAY = 99
"""The place of the row that only one attempt reads."""

_OTHERS = {"founder": 90, "rescuer": 91, "stream0": 92}

Row = tuple[int, str]
"""Its flight, and the partition of its file."""


def first_flight(writer: str, task: int, attempt: int, place: int) -> int:
    """The first flight of a batch: no other batch of the run has any of its rows."""
    number = _OTHERS[writer] if writer in _OTHERS else int(writer.removeprefix("writer"))
    return ((number * 10 + task) * 10 + attempt) * 1000 + place * 10


def partition_of(month: int, *, by_year: bool) -> str:
    return f"year={YEARS[month]}/month={month}" if by_year else f"month={month}"


COLUMNS: dict[str, Any] = {
    "flight": pa.int64(),
    "month": pa.int32(),
    "year": pa.int32(),
    "key": pa.string(),
    "at": pa.int64(),
}


def schema_of(plan: Plan) -> pa.Schema:
    """Return the columns of the plan's table."""
    names = ["flight", "month", *(["year"] if plan.by_year else []), *(["key", "at"] if plan.unique_in else [])]
    return pa.schema([(name, COLUMNS[name]) for name in names])


def partition_by(plan: Plan) -> list[str]:
    return ["year", "month"] if plan.by_year else ["month"]


REPORT_S = 0.005


class TasksFailed(Exception):
    """No attempt of a task has succeeded, or the engine's patience is over."""


class Stage:
    """Tasks of one job. It runs in the driver; attempts report to it how they ended."""

    def __init__(
        self,
        scene: Scene,
        driver: Process,
        ticket: WriteTicket,
        plans: Sequence[TaskPlan],
        work: Callable[["Recorded", int, AttemptPlan, int], Awaitable[Any]],
        *,
        name: str = "task",
        job: str = "",
    ) -> None:
        """``work`` is what an attempt does, and its result its report: of a task, by its plan and number. ``job`` is
        the name of the job, where it is not that of its driver.
        """
        self._scene = scene
        self._driver = driver
        self._ticket = WriteTicket.decode(ticket.encode())  # an executor gets it as bytes
        self._plans = plans
        self._work = work
        self._name = name
        self._job = job or driver.name
        self._winners: dict[int, Any] = {}
        self._failed: list[set[str]] = [set() for _ in plans]
        """The attempts of each task that have failed: one may fail, and be killed after that."""
        self._news = trio.Event()

    async def run(self, patience_s: float) -> list[Any]:
        """The winners' reports. Raises TasksFailed."""
        for task, plan in enumerate(self._plans):
            for number, attempt in enumerate(plan.attempts):
                self._start(task, number, attempt)
        with trio.move_on_after(patience_s):
            while len(self._winners) < len(self._plans):
                if any(
                    len(failed) >= len(plan.attempts) for failed, plan in zip(self._failed, self._plans, strict=True)
                ):
                    break
                self._news = trio.Event()
                await self._news.wait()
            else:
                return list(self._winners.values())
        raise TasksFailed

    def _start(self, task: int, number: int, attempt: AttemptPlan) -> None:
        name = f"{self._job}/{self._name}{task}.{number}"
        process = self._scene.process(name, attempt.host, attempt.mishap)
        process.on_death.append(partial(self._report, None, task, process))
        self._scene.start(process, self._attempt, process, task, number, attempt)

    async def _attempt(self, process: Process, task: int, number: int, attempt: AttemptPlan) -> None:
        await trio.sleep(attempt.start_s)
        async with background_tasks() as background:
            source = Recorded(self._scene, process, self._ticket, background)
            report = None
            try:
                report = await self._work(source, task, attempt, number)
            except (TallymarkError, InputFailed) as error:
                self._scene.note(process, f"fails: {error!r}")
            self._report(report, task, process)
            if report is not None:
                self._scene.note(process, "succeeds")
                if attempt.dies_after:
                    self._scene.kernel.soon(partial(self._scene.kill, process))
            await source.settled()  # the process of an executor outlives its tasks

    def _report(self, report: Any, task: int, process: Process) -> None:
        self._scene.kernel.after(REPORT_S, partial(self._receive, report, task, process))

    def _receive(self, report: Any, task: int, process: Process) -> None:
        if report is None:
            if task not in self._winners:
                self._failed[task].add(process.name)
        elif task in self._winners:
            self._scene.note(self._driver, f"hears of a second success of task {task}")
        elif process.is_dead:
            self._scene.note(self._driver, f"hears of the success of {process.name}, which is dead")
            self._winners[task] = report
        else:
            self._winners[task] = report
        self._news.set()


class InputFailed(Exception):
    """The rows that a task was to write could not be had."""


async def write_flights(
    by: str,
    tasks: Sequence[TaskPlan],
    planned: Sequence[Sequence[PlannedFile]],
    source: "Recorded",
    task: int,
    plan: AttemptPlan,
    number: int,
) -> TaskReport:
    """Write flights that only this attempt has."""
    schema, first = source.ticket.schema, partial(first_flight, by, task, number)
    batches = [flights(schema, first(place), month) for place, month in enumerate(tasks[task].months)]
    ahead = [] if plan.astray is None else [flights(schema, first(ASTRAY), plan.astray, count=1)]
    return await write(source, task, plan, number, batches, planned[task], ahead)


async def write(
    source: "Recorded",
    task: int,
    plan: AttemptPlan,
    number: int,
    batches: Sequence[pa.RecordBatch],
    planned: Sequence[PlannedFile],
    ahead: Sequence[pa.RecordBatch] = (),
) -> TaskReport:
    """What ``write_task`` does, the writer itself being the library's own."""
    scene = source.scene

    def run() -> TaskReport:
        with TaskWriter(
            source.ticket,
            source.port,
            source,
            task=task,
            attempt=number,
            planned=planned,
            read=source.read,
            monotonic=lambda: scene.kernel.now,
            pause=lambda seconds: block_on(trio.sleep(seconds)),  # noqa: ASYNC105  # awaited there
            executor=BlockingExecutor(source.background),
        ) as writer:
            for batch in ahead:
                writer.write(batch)
            for batch in arriving(batches, plan):
                writer.write(batch)
            return writer.finish()

    return await run_blocking(run)


def arriving(batches: Sequence[pa.RecordBatch], plan: AttemptPlan) -> Iterator[pa.RecordBatch]:
    """Yield the batches as an attempt gets them. For code in ``run_blocking``. Raises InputFailed."""
    for place, batch in enumerate(batches):
        if plan.raises and place * 2 >= len(batches):
            raise InputFailed
        if plan.row_s:
            block_on(trio.sleep(plan.row_s))  # noqa: ASYNC105  # awaited there
        yield batch


def flights(schema: pa.Schema, first: int, month: int, *, count: int = ROWS) -> pa.RecordBatch:
    """So many flights in a row, in the columns of the table."""
    numbers = list(range(first, first + count))
    values: dict[str, list[Any]] = {
        "flight": numbers,
        "month": [month] * count,
        "year": [YEARS[month]] * count,
        "key": list(map(key_of, numbers)),
        "at": list(map(order_of, numbers)),
    }
    columns: Any = [pa.array(values[name], COLUMNS[name]) for name in schema.names]
    return pa.RecordBatch.from_arrays(columns, schema.names)


def _source(scene: Scene, process: Process, ticket: WriteTicket, port: Port, background: TaskGroup) -> MarkerSource:
    """What ``task_markers`` makes, without its threads."""

    def start_soon(act: Callable[[Sequence[str]], Awaitable[None]], paths: Sequence[str]) -> Future[None]:
        future: Future[None] = Future()
        background.start_soon(_settle, future, act, paths)
        return future

    if ticket.service is None:
        return DirectMarkers(start_soon, port, ticket)
    direct = DirectMarkers(start_soon, port, ticket, flag=DirectFlag())
    settings = ticket.settings
    wait_s = settings.service_patience_s if settings.fallback else settings.marker_wait_s
    address = spread(scene, ticket.service, process.pid)
    client = Client(scene.network, process, address, ticket.instant, wait_s=wait_s)
    background.start_soon(client.run)
    if not settings.fallback:
        return client
    return FallbackMarkers(
        client,
        direct,
        instant=ticket.instant,
        outage=Outage(),
        wait_s=settings.marker_wait_s,
        pause_s=settings.service_pause_s,
        monotonic=lambda: scene.kernel.now,
    )


async def _settle(future: Future[None], act: Callable[[Sequence[str]], Awaitable[None]], paths: Sequence[str]) -> None:
    try:
        await act(paths)
    except TallymarkError as error:
        future.set_exception(error)
    else:
        future.set_result(None)


class Recorded:
    """The markers of one attempt. Records which were requested, and the answers."""

    def __init__(self, scene: Scene, process: Process, ticket: WriteTicket, background: TaskGroup) -> None:
        self.scene = scene
        self.ticket = ticket
        self.port = scene.port(process)
        self._name = process.name
        self.background = background
        self._source = _source(scene, process, ticket, self.port, background)
        self._asked: list[Future[None]] = []

    def request(self, paths: Sequence[str], io: MarkerIo = "CREATE") -> Future[None]:
        request = self.scene.record_request(self._name, self.ticket.instant, paths, io)
        future = self._source.request(paths, io)
        future.add_done_callback(lambda done: self.scene.record_answer(request, done.exception()))
        self._asked.append(future)
        return future

    def read(self, path: str) -> Future[bytes]:
        """As a task's own loop does it."""
        future: Future[bytes] = Future()
        self.background.start_soon(self._read, future, path)
        return future

    async def _read(self, future: Future[bytes], path: str) -> None:
        try:
            future.set_result(await self.port.get(path))
        except TallymarkError as error:
            self.scene.mishaps["small file gone"] += isinstance(error, NotFound)
            future.set_exception(error)

    async def settled(self) -> None:
        await until_done(self._asked)
