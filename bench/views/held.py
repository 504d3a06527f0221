"""A view that a process holds itself: ours with one of its stores, or a Delta log."""

from collections.abc import Callable, Mapping, Sized
from pathlib import Path
from typing import Any, Protocol

from tallymark.backends import StorageOptions, open_backend
from tallymark.backends.contract import Backend
from tallymark.bench.views.question import Question
from tallymark.engine.settings import CommitSettings
from tallymark.engine.timeline.log import CommitLog
from tallymark.engine.views.memory_store import MemoryStore
from tallymark.engine.views.view import View


class Held(Protocol):
    async def open(self) -> None:
        """Until somebody may ask."""
        ...

    async def ask(self, question: Question) -> Sized:
        """As of the last sync: what the answer names."""
        ...

    async def load_all(self) -> None:
        """Until every partition can be asked for."""
        ...

    async def sync(self) -> None:
        """Follow what was committed since."""
        ...

    def close(self) -> None: ...


Told = Mapping[str, Any]
"""``held``, the name of one of these, and what it needs; JSON, since holders are other processes."""


def held(told: Told) -> Held:
    return _HELD[told["held"]](told)


class OurView:
    """As a job holds it."""

    def __init__(self, told: Told) -> None:
        self._log = CommitLog(backend_of(told), CommitSettings())
        self._view = View(MemoryStore())
        self._at = self._view.at(0)

    async def open(self) -> None:
        await self.sync()

    async def ask(self, question: Question) -> Sized:
        if question.file_id is None:
            return await self._at.files(question.partition)
        found = await self._at.file(question.partition, question.file_id)
        return () if found is None else (found,)

    async def load_all(self) -> None:
        await self._view.preload()

    async def sync(self) -> None:
        self._view.sync(await self._log.refresh())
        self._at = self._view.at(self._view.head)

    def close(self) -> None:
        self._view.close()


class DeltaView:
    def __init__(self, told: Told) -> None:
        self._folder = Path(told["table"])

    async def open(self) -> None:
        from tallymark.bench.peers.delta_log import DeltaLog

        self._log = DeltaLog(self._folder)

    async def ask(self, question: Question) -> Sized:
        return self._log.files(question.partition)

    async def load_all(self) -> None:
        pass

    async def sync(self) -> None:
        self._log.sync()

    def close(self) -> None:
        pass


def backend_of(told: Told) -> Backend:
    """Of the table at ``table``: a folder, or a URL on the harness's own server."""
    endpoint = told.get("endpoint")
    if endpoint is None:
        return open_backend(told["table"])
    return open_backend(told["table"], options=loopback_options(endpoint))


def loopback_options(endpoint: str) -> StorageOptions:
    provider = "tallymark.bench.loopback.server:credentials"
    return StorageOptions(endpoint=endpoint, region="us-east-1", credentials=provider)


_HELD: dict[str, Callable[[Told], Held]] = {"ours": OurView, "delta": DeltaView}
