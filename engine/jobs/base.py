"""Base of a write: the table as of the position that the write replaces files of and checks conflicts from."""

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
    """None for a position below the view's floor: there only the log knows, which forgets nothing."""

    @classmethod
    def of(cls, view: View, log: CommitLog, position: int | None = None) -> "WriteBase":
        """As of a position, which the view answers for as long as it is there, or of its head.

        A clean may have let files of that position go. The base says what is replaced, and does not read it.

        Raises:
            InvalidRequest: the log has not reached that position.
        """
        position = view.head if position is None else position
        return cls(position=position, log=log, at=None if position < view.floor else view.pin(position))

    async def replaced(self, scope: Scope | None) -> tuple[DataFile, ...]:
        """Return the files that an overwrite of the scope lets go, sorted by path; none without one."""
        if scope is None:
            return ()
        if self.at is None:
            history = await self.log.reach(0)
            return tuple(file for file in history.files_at(self.position) if scope.holds(file.partition))
        partitions = await self.at.partitions()
        return await self.at.files_of(partition for partition in partitions if scope.holds(partition))


async def check_base(handle: TableHandle, request: WriteRequest) -> None:
    """Raise InvalidRequest for a base that the log has not reached. Without one, nothing is read.

    On return the history has all entries since the base.
    """
    if request.base is None:
        return
    history = await handle.log.refresh()
    if request.base > history.head:
        raise InvalidRequest(
            f"base={request.base}: the log ends at position {history.head}; give one at which this table was read"
        )
    await handle.log.reach(request.base)
