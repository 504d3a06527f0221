"""Requests at a steady rate, on a clock that is told."""

import anyio
import trio

from tallymark.engine.errors import FlushFailed
from tallymark.engine.markers import MarkerDirectory
from tallymark.engine.settings import MarkerSettings

NO_MERGES = MarkerSettings(merge_bytes_ratio_max=1)
"""So that each put is a flush."""


class Requests:
    """One request a marker, at a steady rate."""

    def __init__(self, directory: MarkerDirectory) -> None:
        self._directory = directory
        self.acked: list[str] = []
        self.failed: list[str] = []
        self.acks_s: list[float] = []

    async def come(self, rate: float, seconds: float, *, label: str = "") -> None:
        """Returns when all are answered."""
        begun = anyio.current_time()
        async with anyio.create_task_group() as tasks:
            for number in range(round(rate * seconds)):
                await trio.sleep_until(begun + number / rate)
                tasks.start_soon(self._ask, f"{label}{number}.parquet")

    async def _ask(self, path: str) -> None:
        asked = anyio.current_time()
        try:
            await self._directory.create(path)
        except FlushFailed:
            self.failed.append(path)
        else:
            self.acked.append(path)
            self.acks_s.append(anyio.current_time() - asked)
