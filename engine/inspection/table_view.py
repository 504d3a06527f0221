"""File-system view of a table for repeated queries."""

from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.views.view import ViewAt, ViewStatistics


class TableView:
    """Made by ``Table.view``. Belongs to the event loop of its block."""

    def __init__(self, handle: TableHandle, properties: TableProperties) -> None:
        self._handle = handle
        self._properties = properties

    async def sync(self) -> ViewAt:
        """Return the table's files now: reads the log entries since the last call, and checks that they follow it."""
        history = await self._handle.log.refresh(verify=True)
        return self._handle.view(self._properties).at(history.head)

    def at(self, position: int) -> ViewAt:
        """Return its files at a position that was read.

        Raises:
            InvalidRequest: it is beyond what was read, or files of it may be deleted.
        """
        return self._handle.view(self._properties).at(position)

    def statistics(self) -> ViewStatistics:
        return self._handle.view(self._properties).statistics()
