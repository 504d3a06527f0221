"""What the table held where a write takes its base: what it replaces is of that, and conflicts are looked for since."""

from dataclasses import dataclass

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.scope import Scope
from tallymark.engine.writes.handle import TableHandle
from tallymark.engine.writes.request import WriteRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteBase:
    position: int
    files: tuple[DataFile, ...]

    @classmethod
    def of(cls, history: History, position: int | None = None) -> "WriteBase":
        """As of a position that the history has, or of its head."""
        position = history.head if position is None else position
        return cls(position=position, files=history.files_at(position))

    def replaced(self, scope: Scope | None) -> tuple[DataFile, ...]:
        """The files that an overwrite of the scope lets go; none without one."""
        return () if scope is None else tuple(file for file in self.files if scope.holds(file.partition))


async def check_base(handle: TableHandle, request: WriteRequest) -> None:
    """Raises InvalidRequest for a base that the log has not reached. Without one, nothing is read."""
    if request.base is None:
        return
    history = await handle.log.refresh()
    if request.base > history.head:
        raise InvalidRequest(
            f"base={request.base}: the log ends at position {history.head}; give one at which this table was read"
        )
