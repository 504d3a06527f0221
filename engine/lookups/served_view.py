"""Server side of lookups: partitions as of the requested position, or a refusal."""

from collections.abc import Callable, Sequence

import anyio

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.rpc.dispatcher import BlockOf
from tallymark.engine.timeline.log import CommitLog
from tallymark.engine.views.view import View, ViewAt


class ServedView:
    """Belongs to the job's event loop."""

    def __init__(self, log: CommitLog, view: Callable[[], View]) -> None:
        """``view`` returns the table's view, synced with the log as far as it was read."""
        self._log = log
        self._view = view
        self._reading = anyio.Lock()
        self._started = 0
        """Number of completed readings of the log for positions that it had not reached."""
        self._failure: Exception | None = None
        self._asked = (-1, "")
        """The last requested position and hash that are of this log."""
        self._at: ViewAt | None = None
        """The blocks at that position, kept because all tasks of a job request one position."""

    async def look_up(self, position: int, log_hash: str) -> BlockOf:
        """Return a function that returns the blocks as of the position of the log with that hash.

        Raises:
            InvalidRequest: the log does not reach that position or is a different one, or the view has dropped the
                position.
            CorruptObject, BackendError: the log would have to be read, and cannot be.
        """
        if position > self._log.history.head:
            await self._catch_up(position)
        history = self._log.history
        if position > history.head:
            raise InvalidRequest(
                f"position {position}: the log ends at {history.head}; the ticket is of another table, or log"
            )
        if position < history.hashed_from:
            raise InvalidRequest(
                f"position {position}: this job has the log from position {history.hashed_from} on; read it for older "
                "ones"
            )
        if history.hash_at(position) != log_hash:
            raise InvalidRequest(
                f"position {position} is one of another log: it has the hash {log_hash[:16]!r} there, and this one "
                f"{history.hash_at(position)[:16]!r}; use the ticket of the job that is running"
            )
        if self._at is None or self._at.position != position:
            self._at = self._view().at(position)
        self._asked = (position, log_hash)
        return self._at.block

    def cached_blocks(self, position: int, log_hash: str, partitions: Sequence[str]) -> Sequence[bytes] | None:
        """Return the blocks if ``look_up`` was called for that position last and nothing has to be read; otherwise
        None.
        """
        if self._at is None or self._asked != (position, log_hash):
            return None
        blocks = []
        for partition in partitions:
            block = self._at.cached_block(partition)
            if block is None:
                return None
            blocks.append(block)
        return blocks

    async def _catch_up(self, position: int) -> None:
        """Read the log on, once for all requests that waited when the reading started, and for those whose position it
        reached.
        """
        started = self._started
        async with self._reading:
            if position <= self._log.history.head:
                return
            if self._started > started:
                if self._failure is not None:
                    raise self._failure
                return
            self._started += 1
            self._failure = None
            try:
                await self._log.refresh()
            except Exception as error:
                self._failure = error
                raise
            except BaseException:
                self._started = started  # the caller was cancelled; those that wait read for themselves
                raise
