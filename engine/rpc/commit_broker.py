"""The service outside of drivers that decides commits of one table together, as a driver uses it.

It holds no truth: where it gives no answer, the writer reads the log, and commits by itself.
"""

from concurrent.futures import Future
from contextlib import suppress
from typing import Any, cast

import anyio
from anyio.lowlevel import current_token

from tallymark.backends.errors import TallymarkError
from tallymark.backends.events import EventLog
from tallymark.engine.errors import InvalidRequest, NotAuthenticated
from tallymark.engine.rpc.circuit_breaker import Outage
from tallymark.engine.rpc.client import JobClient, client_for
from tallymark.engine.rpc.handshake import COMMITS, ServiceAddress
from tallymark.engine.rpc.messages import Commit
from tallymark.engine.rpc.shared_service import commits_address
from tallymark.engine.settings import SharedServiceSettings

PAUSE_S = 5.0
"""Time without requests after the service gave no answer: in that time it may have been started again."""

_events = EventLog(__name__)


class CommitBroker:
    """Requests of all jobs of one ``Table`` in one event loop, over one connection."""

    def __init__(self, settings: SharedServiceSettings, url: str) -> None:
        """``url`` is that of the table."""
        self.settings = settings
        self._url = url
        self._address: ServiceAddress | None = None
        self._asking = anyio.Lock()
        self._outage = Outage()

    async def is_there(self) -> bool:
        """Return whether a commit can be requested: the service has answered, and not been silent for some seconds."""
        async with self._asking:
            now = anyio.current_time()
            if self._outage.is_on and not self._outage.is_try_due(now, pause_s=PAUSE_S):
                return False
            try:
                self._address = self._address or await commits_address(self.settings, self._url)
            except TallymarkError as error:
                self._lost(error)
        return self._address is not None

    async def commit(self, commit: Commit) -> int | None:
        """Return the position at which the commit is in the log; None where the service does not say that it is. It may
        be by then, or later: the service may have lost its connection before it puts the entry.
        """
        assert self._address is not None, "it is there"
        client = client_for(self._address, COMMITS, self.settings.commit_wait_s)
        try:
            position = await _result(client.commit(commit))
        except TallymarkError as error:
            self._refused(error, client)
            return None
        if self._outage.end():
            _events.info("broker.reached", url=self._url)
        return position

    def _refused(self, error: TallymarkError, client: JobClient) -> None:
        if isinstance(error, NotAuthenticated):  # it was started again with another secret
            self._address = None
        if isinstance(error, InvalidRequest):
            _events.info("broker.refused", url=self._url, reason=error)
            return
        client.close()  # after the message that the service ends it connects no more
        self._lost(error)

    def _lost(self, error: TallymarkError) -> None:
        if self._outage.begin(anyio.current_time(), pause_s=PAUSE_S):
            _events.warning("broker.lost", url=self._url, reason=error)


async def _result(future: Future[int]) -> int:
    """Return the result of a future that another thread, or this one, settles."""
    settled, loop = anyio.Event(), cast("Any", current_token().native_token)
    call_soon = loop.run_sync_soon if hasattr(loop, "run_sync_soon") else loop.call_soon_threadsafe

    def wake(_: Future[int]) -> None:
        with suppress(RuntimeError):  # the event loop is over
            call_soon(settled.set)  # without a wait, unlike anyio.from_thread: the thread has more answers to hand over

    future.add_done_callback(wake)
    await settled.wait()
    return future.result()
