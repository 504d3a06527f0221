"""One table whose jobs use this service: markers of their tasks, and lookups in a view of the table.

The service puts no heartbeat and seals nothing: the driver and other writers do. Whether an instant takes markers is
read from storage when it is opened, and the claim shows that from then on (``served_instants``). The process that ends
the instant seals it, overwrites the claims, and reads the markers after that (``load_markers``). Commits of several
drivers are decided together (``broker``).
"""

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

import anyio

from tallymark.backends.contract import Backend, exists
from tallymark.backends.errors import BackendError, TallymarkError
from tallymark.backends.events import EventLog
from tallymark.engine.errors import InvalidRequest, Sealed
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.jobs.prepare import read_properties
from tallymark.engine.lazy import Lazy
from tallymark.engine.lookups.served_view import ServedView
from tallymark.engine.markers.engine import MarkerEngine
from tallymark.engine.markers.segment import is_claim, marker_folder
from tallymark.engine.rpc.dispatcher import BlockOf, Settle
from tallymark.engine.rpc.messages import Commit, CreateMarkers
from tallymark.engine.serve.broker import Broker
from tallymark.engine.serve.memory import TABLE_BYTES, LogBytes, Memory, Users
from tallymark.engine.serve.served_instants import ServedInstant, ServedInstants
from tallymark.engine.settings import CommitSettings, LeaseSettings, ViewSettings
from tallymark.engine.tasks.file_name import check_is_file_of
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.timeline.reservation import OPEN_FOLDER
from tallymark.engine.timeline.seal import seal_path

ENTRIES_MAX = 1000
"""Entries that are added to a table's log in memory before it is read again, from a checkpoint on: writers leave one
every 64 entries.
"""

VIEWS_MAX = 64
"""Jobs of a table whose position's blocks are cached. Another job takes the place of the one that has requested
nothing for the longest time.
"""

_events = EventLog(__name__)


class JobTable:
    """The owner of the marker engine's tasks outlives it."""

    def __init__(self, backend: Backend, engine: MarkerEngine, views: ViewSettings, memory: Memory) -> None:
        self._backend = backend
        self._engine = engine
        self._view_settings = views
        self._read_again()
        self._instants = ServedInstants(engine, memory, self._serve)
        self._users = Users()

    @property
    def is_idle(self) -> bool:
        """Whether no request waits, and no instant is served."""
        return self._users.is_idle and self._instants.is_empty

    @property
    def memory_bytes(self) -> int:
        """Estimate of what the log and the views use."""
        decided = 0 if self._broker is None else self._broker.memory_bytes
        return TABLE_BYTES + self._log_bytes.now() + self._handle.view_memory_bytes + decided

    def release(self) -> None:
        """Release log and views, unless a request waits. Blocks that are requested of them raise Closed."""
        if self._users.is_idle:
            self._handle.close()
            self._read_again()

    def _read_again(self) -> None:
        """Start without anything of the log, which the next request reads from a checkpoint on."""
        self._handle = TableHandle(
            self._backend, CommitSettings(), LeaseSettings(), view_settings=self._view_settings, lasts=True
        )
        self._properties = Lazy(self._identify)
        self._log_bytes = LogBytes(self._handle.log)
        self._first_head: int | None = None
        self._broker: Broker | None = None
        self._views: OrderedDict[str, ServedView] = OrderedDict()
        """By instant, the least recently used first."""

    def close(self) -> None:
        """End what waits as Closed, and release the memory and local files of the views."""
        self._instants.forget_all()
        self._handle.close()

    async def create_markers(
        self, instant: str, requests: Sequence[CreateMarkers], settle: Settle[CreateMarkers]
    ) -> None:
        """Settle as ``Handler.create_markers``. Raises what the check of the instant does."""
        with self._users.one():
            served = self._instants.get(instant)
            with served.users.one():
                await served.open()
                await served.directory.create_many(requests, settle)

    async def look_up(self, instant: str, position: int, log_hash: str) -> BlockOf:
        """Return as ``Handler.look_up``. Raises what ``ServedView.look_up`` does, and UnsupportedTable."""
        if self._first_head is not None and self._handle.log.history.head - self._first_head > ENTRIES_MAX:
            self.release()
        with self._users.one():
            properties = await self._properties.get()
            block_of = await self._view(instant, properties).look_up(position, log_hash)
            if self._first_head is None:
                self._first_head = self._handle.log.history.head
            return block_of

    async def commit(self, requests: Sequence[Commit]) -> list[int | TallymarkError]:
        """Return as ``Broker.commit``. Raises what it does, and UnsupportedTable."""
        with self._users.one():
            properties = await self._properties.get()
            self._broker = self._broker or Broker(self._backend, properties)
            return await self._broker.commit(requests)

    def cached_blocks(
        self, instant: str, position: int, log_hash: str, partitions: Sequence[str]
    ) -> Sequence[bytes] | None:
        """Return as ``Handler.cached_blocks``."""
        if instant not in self._views:
            return None
        self._views.move_to_end(instant)
        return self._views[instant].cached_blocks(position, log_hash, partitions)

    def _view(self, instant: str, properties: TableProperties) -> ServedView:
        if instant not in self._views:
            while len(self._views) >= VIEWS_MAX:
                self._views.popitem(last=False)
            self._views[instant] = ServedView(self._handle.log, partial(self._handle.view, properties))
        self._views.move_to_end(instant)
        return self._views[instant]

    async def _identify(self) -> TableProperties:
        properties = await read_properties(self._backend)
        if properties is None:
            raise InvalidRequest(f"{self._backend.url} holds no table")
        self._handle.log.identify(properties.id, properties.writer_features)
        return properties

    def _serve(self, instant: str, is_again: bool) -> ServedInstant:
        assert not is_again, "no instant of a job has a second marker directory"
        check_path = partial(check_is_file_of, instant)
        return ServedInstant(self._engine, instant, self._check_open, self._lost, check_path=check_path)

    async def _check_open(self, served: ServedInstant) -> None:
        """Raise Sealed unless the instant is open. The seal is read first, the log second, the reservation last: a seal
        is deleted only after the log has decided the instant, and a reservation is deleted last.
        """
        await self._properties.get()
        instant = served.instant
        is_open = not await exists(self._backend, seal_path(instant))
        is_open = is_open and (await self._handle.log.refresh(verify=True)).decided(instant) is None
        if not is_open or not await exists(self._backend, f"{OPEN_FOLDER}/{instant}"):
            await self._refuse(served, "it is being committed or rolled back, or is over")

    async def _lost(self, served: ServedInstant) -> None:
        await self._refuse(served, "it is being committed or rolled back")

    async def _refuse(self, served: ServedInstant, reason: str) -> None:
        error = Sealed(f"instant {served.instant} takes no more markers: {reason}")
        claims = [path for path in served.directory.objects if is_claim(path.rpartition("/")[2])]
        served.directory.end(error)
        self._instants.forget(served)
        _events.info("instant.refused", url=self._backend.url, instant=served.instant, reason=reason)
        with anyio.CancelScope(shield=True):  # this may be a check of the requests that have just been ended
            await self._clear(served.instant, claims)
        raise error

    async def _clear(self, instant: str, claims: Sequence[str]) -> None:
        """Delete what would remain: the claims of a server that acks nothing, and of an instant that is over everything
        that has arrived since its writer has deleted the rest.
        """
        with suppress(BackendError):  # a later clean deletes it
            await self._backend.delete(claims)
            if not await exists(self._backend, f"{OPEN_FOLDER}/{instant}"):
                await self._backend.delete([entry.path async for entry in self._backend.list(marker_folder(instant))])
