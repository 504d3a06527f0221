"""A view that a process holds itself: ours with one of its stores, or a Delta log."""

from collections.abc import Callable, Mapping, Sized
from pathlib import Path
from typing import Any, Protocol

from tallymark.backends import StorageOptions, open_backend
from tallymark.bench.loopback import credentials
from tallymark.bench.views.lookup import Lookup
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.jobs.prepare import read_properties
from tallymark.engine.settings import CommitSettings, LeaseSettings, ViewSettings


class Held(Protocol):
    async def open(self) -> None:
        """Return when queries may start."""
        ...

    async def ask(self, lookup: Lookup) -> Sized:
        """As of the last sync: what the answer names."""
        ...

    async def load_all(self) -> None:
        """Until every partition can be asked for."""
        ...

    async def sync(self) -> None:
        """Follow what was committed since."""
        ...

    def close(self) -> None: ...


Spec = Mapping[str, Any]
"""``held``, the name of one of these, and what it needs; JSON, since holders are other processes."""


def held(spec: Spec) -> Held:
    return _HELD[spec["held"]](spec)


class OurView:
    """As a job holds it."""

    def __init__(self, spec: Spec) -> None:
        backend = open_backend(spec["table"], options=options_of(spec))
        settings = views_of(spec)
        self._handle = TableHandle(backend, CommitSettings(), LeaseSettings(), view_settings=settings, lasts=True)

    async def open(self) -> None:
        found = await read_properties(self._handle.backend)
        assert found is not None, "the table has been made"
        self._properties = found
        await self.sync()

    async def ask(self, lookup: Lookup) -> Sized:
        if lookup.file_id is None:
            return await self._at.files(lookup.partition)
        found = await self._at.file(lookup.partition, lookup.file_id)
        return () if found is None else (found,)

    async def load_all(self) -> None:
        await self._handle.view(self._properties).preload()

    async def sync(self) -> None:
        history = await self._handle.log.refresh()
        self._at = self._handle.view(self._properties).at(history.head)

    def close(self) -> None:
        self._handle.close()


class DeltaView:
    def __init__(self, spec: Spec) -> None:
        self._folder = Path(spec["table"])

    async def open(self) -> None:
        from tallymark.bench.peers.delta_log import DeltaLog

        self._log = DeltaLog(self._folder)

    async def ask(self, lookup: Lookup) -> Sized:
        return self._log.files(lookup.partition)

    async def load_all(self) -> None:
        pass

    async def sync(self) -> None:
        self._log.sync()

    def close(self) -> None:
        pass


def views_of(spec: Spec) -> ViewSettings:
    return ViewSettings(**spec.get("views", {}))


def options_of(spec: Spec) -> StorageOptions:
    """Return the options of a table in a folder, or on the harness's own server, whose ``endpoint`` is given then."""
    endpoint = spec.get("endpoint")
    if endpoint is None:
        return StorageOptions()
    provider = f"{credentials.__module__}:{credentials.__name__}"
    return StorageOptions(endpoint=endpoint, region="us-east-1", credentials=provider)


_HELD: dict[str, Callable[[Spec], Held]] = {"ours": OurView, "delta": DeltaView}
