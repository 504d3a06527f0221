"""The tables of jobs that a service serves: the handler of the requests of their tasks."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from anyio.abc import TaskGroup

from tallymark.engine.errors import Closed, InvalidRequest, ServiceUnavailable, TableReplaced
from tallymark.engine.markers.engine import MarkerEngine
from tallymark.engine.rpc.dispatcher import BlockOf, Handler, Settle
from tallymark.engine.rpc.handshake import COMMITS, of_job_name
from tallymark.engine.rpc.messages import Commit, CreateMarkers
from tallymark.engine.serve.job_figures import JobFigures
from tallymark.engine.serve.job_table import JobTable
from tallymark.engine.serve.memory import Memory
from tallymark.engine.serve.roots import OpenTables, Roots
from tallymark.engine.settings import MarkerSettings, ViewSettings

T = TypeVar("T")


class JobTables(Handler):
    """The owner of ``tasks`` outlives it."""

    def __init__(
        self,
        roots: Roots,
        tasks: TaskGroup,
        markers: MarkerSettings,
        views: ViewSettings,
        memory: Memory,
        figures: JobFigures | None = None,
    ) -> None:
        self._roots = roots
        self._tasks = tasks
        self._markers = markers
        self._views = views
        self._memory = memory
        self._figures = figures
        self._tables = OpenTables(self._open, memory)

    def close(self) -> None:
        self._tables.close()

    async def create_markers(self, job: str, requests: Sequence[CreateMarkers], settle: Settle[CreateMarkers]) -> None:
        instant, place = of_job_name(job)
        if self._figures is not None:
            settle = self._figures.measured(job, settle)
        try:
            await self._on_table(place, lambda table: table.create_markers(instant, requests, settle))
        except InvalidRequest as error:  # of this service, and not of the requests, whose errors are settled
            raise ServiceUnavailable(f"this service cannot serve {place}: {error}") from error

    def cached_blocks(
        self, job: str, position: int, log_hash: str, partitions: Sequence[str]
    ) -> Sequence[bytes] | None:
        instant, place = of_job_name(job)
        table = self._tables.find(place)
        return None if table is None else table.cached_blocks(instant, position, log_hash, partitions)

    async def look_up(self, job: str, position: int, log_hash: str) -> BlockOf:
        block_of = await self._look_up(job, position, log_hash)

        async def block(partition: str) -> bytes:
            nonlocal block_of
            try:
                return await block_of(partition)
            except Closed:  # the memory of the table was needed since the last block
                block_of = await self._look_up(job, position, log_hash)
                return await block_of(partition)

        return block

    async def commit(self, job: str, requests: Sequence[Commit], settle: Settle[Commit]) -> None:
        name, place = of_job_name(job)
        if name != COMMITS:
            raise InvalidRequest(f"{job} is a job, whose tasks commit nothing")
        try:
            outcomes = await self._on_table(place, lambda table: table.commit(requests))
        except TableReplaced as error:
            raise InvalidRequest(str(error)) from error
        await settle([*zip(requests, outcomes, strict=True)])

    async def _look_up(self, job: str, position: int, log_hash: str) -> BlockOf:
        instant, place = of_job_name(job)
        return await self._on_table(place, lambda table: table.look_up(instant, position, log_hash))

    async def _on_table(self, place: str, act: Callable[[JobTable], Awaitable[T]]) -> T:
        table = self._tables.get(place)
        try:
            return await act(table)
        except TableReplaced:  # since it was opened here: the job is of the table that is there now, or is over
            self._tables.drop(table)
            return await act(self._tables.get(place))

    def _open(self, place: str) -> JobTable:
        backend = self._roots.open(place)
        return JobTable(backend, MarkerEngine(backend, self._markers, self._tasks), self._views, self._memory)
