"""What partitions held where a job began, by the log itself: for a process that cannot ask the job's service."""

from collections.abc import Callable, Iterable

import anyio

from tallymark.backends.contract import Backend
from tallymark.backends.events import EventLog
from tallymark.engine.errors import ServiceUnavailable
from tallymark.engine.lazy import Lazy
from tallymark.engine.lookups.rate_limit import ReadingPace
from tallymark.engine.tasks.ticket import WriteTicket
from tallymark.engine.views.open import open_store
from tallymark.engine.views.view import View
from tallymark.engine.views.view_until import view_until

_events = EventLog(__name__)


class LogBlocks:
    """Belongs to one event loop. Many who ask at once cost one reading; where it fails, it fails for them all."""

    def __init__(self, ticket: WriteTicket, open_storage: Callable[[], Backend], pace: ReadingPace) -> None:
        """``open_storage`` is called when it is needed; its storage is the ticket's."""
        self._ticket = ticket
        self._settings = ticket.views
        self._open_storage = open_storage
        self._pace = pace
        self._view = Lazy(self._read)
        self._made: View | None = None
        self.readings = 0
        """Readings of the log that were begun."""

    async def blocks(self, partitions: Iterable[str]) -> dict[str, bytes]:
        """By partition; within ``ViewSettings.log_wait_s``.

        Raises:
            CorruptObject: the log cannot be read, or is not the one that the job began with.
            ServiceUnavailable: it was not read in time, or too often already.
            BackendError: storage did not answer.
        """
        wait_s = self._settings.log_wait_s
        try:
            with anyio.fail_after(wait_s):
                at = (await self._view.get()).at(self._ticket.base)
                return {partition: await at.block(partition) for partition in partitions}
        except TimeoutError as error:
            raise ServiceUnavailable(
                f"the service is of no use, and the log of {self._ticket.url} was not read within {wait_s:g} s "
                "(ViewSettings.log_wait_s)"
            ) from error

    async def close(self) -> None:
        """Give back what was read. Nobody asks any more."""
        if self._made is not None:
            self._made.close()

    async def _read(self) -> View:
        settings, ticket = self._settings, self._ticket
        pause_s = self._pace.admit(
            count_a_minute=settings.log_readings, jitter_s=settings.log_jitter_s, patience_s=settings.log_wait_s
        )
        await anyio.sleep(pause_s)
        self.readings += 1
        began = anyio.current_time()
        store = open_store(settings)
        try:
            view = await view_until(self._open_storage(), ticket.base, ticket.base_hash, store)
        except BaseException:
            store.close()
            raise
        self._made = view
        _events.info(
            "view.read",
            instant=ticket.instant,
            position=ticket.base,
            partitions=len(view.states),
            seconds=anyio.current_time() - began,
        )
        return view
