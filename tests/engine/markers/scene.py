"""One instant's directory in an engine over storage with faults, and how the requests for its markers ended."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.abc
import trio

from tallymark.backends.memory import MemoryBackend
from tallymark.engine.markers import MarkerDirectory, open_marker_engine
from tallymark.engine.markers.directory import CheckOpen, always_open
from tallymark.engine.markers.engine import MarkerEngine
from tallymark.engine.markers.statistics import MarkerStatistics
from tallymark.engine.settings import MarkerSettings
from tests.engine.markers.recorded import INSTANT
from tests.support.faulty import Fault, FaultyBackend


@dataclass
class Scene:
    storage: FaultyBackend
    engine: MarkerEngine
    directory: MarkerDirectory
    tasks: anyio.abc.TaskGroup
    outcomes: list[tuple[float, Any]] = field(default_factory=list)
    """When each request ended, and its answers or the class of its error."""

    @property
    def statistics(self) -> MarkerStatistics:
        return self.engine.statistics()

    def ask(self, *paths: str) -> None:
        """Start a request."""
        self.tasks.start_soon(self.outcome_of, *paths)

    async def create_each(self, count: int, prefix: str = "") -> None:
        """One request after the other."""
        for number in range(count):
            await self.directory.create(f"{prefix}{number}.parquet")

    async def outcome_of(self, *paths: str) -> None:
        try:
            answers: object = await self.directory.create(*paths)
        except Exception as error:  # whatever it is, the test wants to see it
            answers = type(error)
        self.outcomes.append((trio.current_time(), answers))

    @property
    def segment_puts(self) -> list[str]:
        return [path for path in self.storage.paths("put_new") if "/MARKERS" in path]


@asynccontextmanager
async def marker_scene(
    *faults: Fault,
    settings: MarkerSettings | None = None,
    check_open: CheckOpen = always_open,
    **fields: Any,
) -> AsyncIterator[Scene]:
    """The engine ends after the block and all requests that it started. ``fields``: of the settings."""
    storage = FaultyBackend(MemoryBackend(), *faults)
    async with (
        open_marker_engine(storage, settings or MarkerSettings(**fields)) as engine,
        anyio.create_task_group() as tasks,
    ):
        yield Scene(storage, engine, engine.directory(INSTANT, check_open=check_open), tasks)
