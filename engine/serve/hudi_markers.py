"""Markers for Hudi's own writers: what Hudi's marker client asks for, on a table that Hudi writes.

Any number of servers may serve one table, and each may die at any moment. So nothing but storage says which markers
there are and whether an instant takes any: its state on Hudi's timeline when a server takes its first marker, or the
first one after a deletion, and from then on the server's claim in the marker directory, which goes with it
(``served_instants``). A server that has lost its claim has lost its markers, too: it looks at the timeline again, and
starts again or refuses.
"""

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio

from tallymark.backends.contract import Backend
from tallymark.backends.events import EventLog
from tallymark.engine.errors import Closed, FlushFailed, InvalidRequest, Sealed, TryAgain
from tallymark.engine.markers.engine import MarkerEngine, open_marker_engine
from tallymark.engine.markers.loading import load_markers
from tallymark.engine.markers.name import INFIX, MarkerIo
from tallymark.engine.markers.segment import is_claim, marker_folder
from tallymark.engine.serve.hudi_timeline import HudiState, hudi_properties, hudi_state
from tallymark.engine.serve.memory import DEFAULT_BYTES, TABLE_BYTES, Memory, Users
from tallymark.engine.serve.served_instants import ServedInstant, ServedInstants
from tallymark.engine.settings import MarkerSettings

ATTEMPTS = 3
"""Attempts of one create while others delete the directory, each time with the instant inflight after that."""

_events = EventLog(__name__)


class _Deleted(TryAgain):
    """The directory was deleted since this server has opened it."""


class HudiMarkers:
    """The markers of one table. Made by ``open_hudi_markers``, whose block owns its tasks."""

    def __init__(self, backend: Backend, engine: MarkerEngine, settings: MarkerSettings, memory: Memory) -> None:
        self._backend = backend
        self._engine = engine
        self._settings = settings
        self._instants = ServedInstants(engine, memory, self._serve)
        self._users = Users()

    @property
    def is_idle(self) -> bool:
        """Whether no request waits, and no instant is served."""
        return self._users.is_idle and self._instants.is_empty

    @property
    def memory_bytes(self) -> int:
        """Estimate of what it uses, without its instants."""
        return TABLE_BYTES

    def release(self) -> None:
        """Do nothing: all that can be read again is of instants."""

    def close(self) -> None:
        """End what waits as Closed."""
        self._instants.forget_all()

    async def create(self, instant: str, marker: str) -> None:
        """Return once a marker, ``[<partition>/]<file>.marker.<IO>``, survives a crash, new or not.

        Raises:
            InvalidRequest: it cannot be a marker of Hudi, or there is no table that Hudi writes.
            Sealed: the instant is not inflight.
            FlushFailed, Overloaded, BackendError: asking again is safe.
        """
        path, infix, io = marker.rpartition(INFIX)
        if not infix:
            raise InvalidRequest(
                f"{marker!r} cannot be a marker: a name of one ends with {INFIX}CREATE, MERGE or APPEND"
            )
        with self._users.one():
            for _ in range(ATTEMPTS):
                served = self._instants.get(instant)
                try:
                    with served.users.one():
                        await served.open()
                        await served.directory.create(path, io=io)
                except (_Deleted, Closed):  # closed: by another request that has found the same
                    if self._instants.forget(served):
                        self._instants.add(instant, is_again=True)
                else:
                    return
        raise FlushFailed(f"{marker_folder(instant)} is deleted again and again; ask later")

    async def names(self, instant: str, *, ios: Collection[MarkerIo] = ("CREATE", "MERGE", "APPEND")) -> list[str]:
        """Return the markers of these kinds that storage has, whichever server has taken them."""
        folder = marker_folder(instant)
        found = await load_markers(self._backend, folder, concurrency=self._settings.load_concurrency)
        return sorted(line for line in found.lines if line.rpartition(INFIX)[2] in ios)

    async def exists(self, instant: str) -> bool:
        """Return whether there is a marker directory, with markers or without."""
        return bool(await self._paths(instant))

    async def delete(self, instant: str) -> bool:
        """Delete the marker directory. Return False if there was none.

        Raises InvalidRequest where there is no table that Hudi writes.
        """
        with self._users.one():
            await hudi_properties(self._backend)
            served = self._instants.find(instant)
            if served is not None:
                with served.users.one():
                    served.directory.seal()
                    await served.directory.drained()
                self._instants.forget(served)
            return await self._delete(instant)

    async def _delete(self, instant: str) -> bool:
        paths = await self._paths(instant)
        await self._backend.delete([path for path in paths if is_claim(path.rpartition("/")[2])])
        await self._backend.delete(await self._paths(instant))
        return bool(paths)

    async def _paths(self, instant: str) -> list[str]:
        return [entry.path async for entry in self._backend.list(marker_folder(instant))]

    def _serve(self, instant: str, is_again: bool) -> ServedInstant:
        return ServedInstant(self._engine, instant, self._check_inflight, self._lost, is_plain=True, is_again=is_again)

    async def _lost(self, served: ServedInstant) -> None:
        raise _Deleted(f"the marker directory of {served.instant} was deleted")

    async def _check_inflight(self, served: ServedInstant) -> None:
        """Raise Sealed unless the instant is inflight. Then the next request looks again.

        What a server of an earlier directory may have put after its deletion is deleted once the instant is over: no
        other process uses or deletes it.
        """
        state = await hudi_state(self._backend, served.instant)
        if state is HudiState.INFLIGHT:
            return
        self._instants.forget(served)
        if served.is_again and state is HudiState.OVER:
            with anyio.CancelScope(shield=True):  # this may be a check of the requests that have just been ended
                await self._delete(served.instant)
        _events.info("hudi.refused", url=self._backend.url, instant=served.instant, state=state.value)
        raise Sealed(
            f"instant {served.instant} takes no markers: on the Hudi timeline of {self._backend.url} it is "
            f"{state.value}, and not inflight"
        )


@asynccontextmanager
async def open_hudi_markers(
    backend: Backend, settings: MarkerSettings | None = None, memory: Memory | None = None
) -> AsyncIterator[HudiMarkers]:
    """Yield the markers of the table at the backend's root. When the block ends, its waiting requests end as Closed."""
    batched = replace(settings or MarkerSettings(), kind="batched")
    async with open_marker_engine(backend, batched) as engine:
        yield HudiMarkers(backend, engine, batched, memory or Memory(DEFAULT_BYTES))
