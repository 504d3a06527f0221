"""A process that keeps a view of the table: the table changes, and the view answers for the requested positions.

Each answer is recorded at the moment at which it is given.
"""

from typing import Any

import trio

from tallymark.backends.errors import BackendError
from tallymark.engine.errors import InvalidRequest, TryAgain, UnsupportedTable
from tallymark.engine.inspection.table_view import TableView
from tallymark.engine.table import Table
from tallymark.engine.views.view import ViewAt
from tests.history import Event, Held, Released, Synced, TurnedAway, Viewed
from tests.simulation.executor import partition_of
from tests.simulation.plan import ViewerPlan, ViewQueryPlan
from tests.simulation.process import Process
from tests.simulation.scene import Scene
from tests.table_invariants import log_entries

MONTHS = (1, 2, 3)


async def follow(scene: Scene, process: Process, table: Table, plan: ViewerPlan) -> None:
    """Keep a view, and take each look in its time."""
    await trio.sleep(plan.start_s)
    try:
        async with table.view() as view:
            viewer = _Viewer(scene, process, table, view)
            async with trio.open_nursery() as nursery:
                for query in plan.queries:
                    nursery.start_soon(viewer.query, query)
    except UnsupportedTable:
        scene.note(process, "finds no table")
    except BackendError as error:
        scene.note(process, f"gives up: {error!r}")


class _Viewer:
    def __init__(self, scene: Scene, process: Process, table: Table, view: TableView) -> None:
        self._scene = scene
        self._process = process
        self._table = table
        self._view = view
        self._start = self._head
        self._reading = trio.Lock()
        """One lease at a time: leases are distinguished by their reader's name."""

    @property
    def _head(self) -> int:
        return self._view.statistics().head

    async def query(self, plan: ViewQueryPlan) -> None:
        await trio.sleep(plan.at_s)
        try:
            if plan.syncs:
                await self._sync()
            position = self._position(plan)
            if plan.is_leased:
                await self._query_under_lease(plan, position)
            else:
                await self._query_at(plan, position)
        except (BackendError, TryAgain) as error:
            self._scene.note(self._process, f"gives up a look: {error!r}")

    async def _sync(self) -> None:
        head_before = len(log_entries(self._scene.objects.whole))
        at = await self._view.sync()
        self._record(Synced, head_before=head_before, position=at.position)

    def _position(self, plan: ViewQueryPlan) -> int:
        match plan.of:
            case "start":
                return self._start
            case "back":
                return max(0, self._head - 1)
            case _:
                return self._head

    async def _query_under_lease(self, plan: ViewQueryPlan, position: int) -> None:
        async with self._reading:
            try:
                async with self._table.reading(as_of=position) as snapshot:
                    self._record(Held, position=position, files=tuple(file.path for file in snapshot.files))
                    try:
                        await self._query_at(plan, position)
                    finally:
                        self._record(Released)
            except InvalidRequest as error:
                self._scene.note(self._process, f"gets no lease: {error}")

    async def _query_at(self, plan: ViewQueryPlan, position: int) -> None:
        try:
            answers = self._view.at(position)
            for partition in sorted({partition_of(month, by_year=self._scene.plan.by_year) for month in MONTHS}):
                await self._request(answers, partition)
                await trio.sleep(plan.pause_s)
        except InvalidRequest:
            self._record(TurnedAway, position=position)

    async def _request(self, answers: ViewAt, partition: str) -> None:
        files = await answers.files(partition)
        head, paths = self._head, tuple(file.path for file in files)
        is_named = partition in await answers.partitions()
        position = answers.position
        self._record(Viewed, head=head, position=position, partition=partition, files=paths, is_named=is_named)

    def _record(self, kind: type[Event], **fields: Any) -> None:
        self._scene.record(kind, reader=self._process.name, **fields)
