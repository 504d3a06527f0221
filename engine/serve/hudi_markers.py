"""Markers for Hudi's own writers: what Hudi's marker client asks for, on a table that Hudi writes.

Any number of servers may serve one table, and each may die at any moment. So nothing but storage says which markers
there are and whether an instant takes any: its state on Hudi's timeline when a server takes its first marker, or the
first one after a deletion, and from then on the server's claim in the marker directory, which goes with it.

- *An ack follows a look at the claim, which follows the put.* A server that has lost its claim has lost its markers,
  too: it looks at the timeline again, and starts again or refuses.
- *Claims are deleted first, and the directory is listed after that.* So whatever was acked before is in that listing;
  and what is put later is not acked.
"""

from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial

import anyio

from tallymark.backends.contract import Backend
from tallymark.backends.events import EventLog
from tallymark.engine.errors import Closed, FlushFailed, InvalidRequest, Sealed, TryAgain
from tallymark.engine.lazy import Lazy
from tallymark.engine.markers.engine import MarkerEngine, open_marker_engine
from tallymark.engine.markers.loading import load_markers
from tallymark.engine.markers.name import INFIX, MarkerIo
from tallymark.engine.markers.segment import is_claim, marker_folder
from tallymark.engine.serve.hudi_timeline import HudiState, hudi_state
from tallymark.engine.settings import MarkerSettings

ATTEMPTS = 3
"""Attempts of one create while others delete the directory, each time with the instant inflight after that."""

INSTANTS_MAX = 64
"""Instants of a table whose markers are held in memory. Another one takes the place of the least recently used for
which no request waits; that is read again from storage when it is asked for. An instant whose writer has died is never
ended here.
"""

_events = EventLog(__name__)


class _Deleted(TryAgain):
    """The directory was deleted since this server has opened it."""


class HudiMarkers:
    """The markers of one table. Made by ``open_hudi_markers``, whose block owns its tasks."""

    def __init__(self, backend: Backend, engine: MarkerEngine, settings: MarkerSettings) -> None:
        self._backend = backend
        self._engine = engine
        self._settings = settings
        self._served: OrderedDict[str, _Served] = OrderedDict()
        """By instant, the least recently used first."""

    @property
    def is_idle(self) -> bool:
        """Whether it holds no instant's markers in memory."""
        return not self._served

    async def create(self, instant: str, marker: str) -> None:
        """Return once a marker, ``[<partition>/]<file>.marker.<IO>``, survives a crash, new or not.

        Raises:
            InvalidRequest: it cannot be a marker of Hudi, or there is no table.
            Sealed: the instant is not inflight.
            FlushFailed, Overloaded, BackendError: asking again is safe.
        """
        path, infix, io = marker.rpartition(INFIX)
        if not infix:
            raise InvalidRequest(
                f"{marker!r} cannot be a marker: a name of one ends with {INFIX}CREATE, MERGE or APPEND"
            )
        for _ in range(ATTEMPTS):
            served = self._served.get(instant) or self._serve(instant)
            self._served.move_to_end(instant)
            try:
                with served.used():
                    await served.inflight.get()
                    await served.directory.create(path, io=io)
            except (_Deleted, Closed):  # closed: by another request that has found the same
                if self._forget(instant, served):
                    self._serve(instant, is_again=True)
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
        """Delete the marker directory. Return False if there was none."""
        served = self._served.get(instant)
        if served is not None:
            served.directory.seal()
            await served.directory.drained()
            self._forget(instant, served)
        return await self._delete(instant)

    async def _delete(self, instant: str) -> bool:
        paths = await self._paths(instant)
        await self._backend.delete([path for path in paths if is_claim(path.rpartition("/")[2])])
        await self._backend.delete(await self._paths(instant))
        return bool(paths)

    async def _paths(self, instant: str) -> list[str]:
        return [entry.path async for entry in self._backend.list(marker_folder(instant))]

    def _serve(self, instant: str, *, is_again: bool = False) -> "_Served":
        idle = [(each, served) for each, served in self._served.items() if not served.users]
        for each, oldest in idle[: max(0, len(self._served) - INSTANTS_MAX + 1)]:
            self._forget(each, oldest)
        served = _Served(self._engine, instant)
        served.inflight = Lazy(partial(self._check_inflight, instant, served, is_again))
        self._served[instant] = served
        return served

    def _forget(self, instant: str, served: "_Served") -> bool:
        """Serve this instant no longer by what it has in memory. Return False if that is so already."""
        if self._served.get(instant) is not served:
            return False
        del self._served[instant]
        self._engine.forget(instant)
        return True

    async def _check_inflight(self, instant: str, served: "_Served", is_again: bool) -> None:
        """Raise Sealed unless the instant is inflight. Then the next request looks again.

        ``is_again``: this server had a directory that is deleted, and may have put something after that. Once the
        instant is over, no other process uses that or deletes it.
        """
        state = await hudi_state(self._backend, instant)
        if state is HudiState.INFLIGHT:
            return
        self._forget(instant, served)
        if is_again and state is HudiState.OVER:
            await self._delete(instant)
        _events.info("hudi.refused", url=self._backend.url, instant=instant, state=state.value)
        raise Sealed(
            f"instant {instant} takes no markers: on the Hudi timeline of {self._backend.url} it is {state.value}, and "
            "not inflight"
        )


class _Served:
    """An instant that this server takes markers of."""

    inflight: Lazy[None]
    """Raises unless the instant is inflight."""

    def __init__(self, engine: MarkerEngine, instant: str) -> None:
        self.directory = engine.directory(instant, check_open=_Shared(self._check_held), is_plain=True)
        self.users = 0
        """Requests that wait for it."""

    @contextmanager
    def used(self) -> Iterator[None]:
        self.users += 1
        try:
            yield
        finally:
            self.users -= 1

    async def _check_held(self) -> None:
        if not await self.directory.is_held():
            raise _Deleted("the marker directory was deleted")


class _Shared:
    """A check that callers share: each gets the result of one that has begun after it has called."""

    def __init__(self, check: Callable[[], Awaitable[None]]) -> None:
        self._check = check
        self._checking = anyio.Lock()
        self._next: Lazy[None] | None = None

    async def __call__(self) -> None:
        if self._next is None:
            self._next = Lazy(self._run)
        await self._next.get()

    async def _run(self) -> None:
        async with self._checking:
            self._next = None
            await self._check()


@asynccontextmanager
async def open_hudi_markers(backend: Backend, settings: MarkerSettings | None = None) -> AsyncIterator[HudiMarkers]:
    """Yield the markers of the table at the backend's root. When the block ends, its waiting requests end as Closed."""
    batched = replace(settings or MarkerSettings(), kind="batched")
    async with open_marker_engine(backend, batched) as engine:
        yield HudiMarkers(backend, engine, batched)
