"""Base of a write: the table at the position whose files the write replaces, and after which it checks for
conflicts.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.jobs.request import WriteRequest
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.timeline.log import CommitLog
from tallymark.engine.timeline.scope import Scope
from tallymark.engine.views.view import View, ViewAt


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteBase:
    position: int
    log: CommitLog
    at: ViewAt | None
    """The view at that position; None below the view's floor, where only the log has the files, and without a scope."""

    @classmethod
    def of(cls, log: CommitLog, position: int | None, view: Callable[[], View] | None) -> "WriteBase":
        """Return the base at a position, or at the head by default. ``view`` is None for a write without a scope, which
        replaces no files of its base.

        A clean may have expired files of that position. The base needs their names, not their content.

        Raises:
            InvalidRequest: the log has not reached that position.
        """
        position = log.history.head if position is None else position
        if view is None:
            return cls(position=position, log=log, at=None)
        synced = view()
        return cls(position=position, log=log, at=None if position < synced.floor else synced.pin(position))

    async def replaced(self, scope: Scope | None) -> tuple[DataFile, ...]:
        """Return the files that an overwrite of the scope replaces, sorted by path; none without a scope."""
        if scope is None:
            return ()
        if self.at is None:
            history = await self.log.reach(0)
            return tuple(file for file in history.files_at(self.position) if scope.holds(file.partition))
        partitions = await self.at.partitions()
        return await self.at.files_of(partition for partition in partitions if scope.holds(partition))


async def check_base(handle: TableHandle, request: WriteRequest) -> None:
    """Check that the log has reached a base, and make the entries after it available. Without a base, nothing is read.

    Raises:
        InvalidRequest: the log has not reached it.
    """
    if request.base is None:
        return
    history = await handle.log.refresh()
    if request.base > history.head:
        raise InvalidRequest(
            f"base={request.base}: the log ends at position {history.head}; give one at which this table was read"
        )
    await handle.log.reach(request.base)
