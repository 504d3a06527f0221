"""Those who keep a view of a table, in whichever way, and are asked as a ``View`` is."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tallymark.backends import Backend
from tallymark.engine.inspection.table_view import TableView
from tallymark.engine.settings import ViewSettings
from tallymark.engine.views.view import ViewAt
from tests.engine.jobs.scene import table


class Keeper:
    """By the public API, in one process; reads the log when it is told to."""

    def __init__(self, view: TableView) -> None:
        self._view = view

    @classmethod
    @asynccontextmanager
    async def of(cls, backend: Backend, views: ViewSettings) -> AsyncIterator["Keeper"]:
        """One who has read the log."""
        async with table(backend, views=views).view() as view:
            yield cls(view)

    async def follow(self) -> None:
        await self._view.sync()

    @property
    def floor(self) -> int:
        return self._view.statistics().floor

    @property
    def head(self) -> int:
        return self._view.statistics().head

    def at(self, position: int) -> ViewAt:
        return self._view.at(position)
