"""Storage whose user is killed or stopped at a chosen call."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from signal import SIGKILL, Signals
from typing import Any, Literal

from tallymark.backends import Backend
from tallymark.engine.timeline.reservation import HEARTBEAT_FOLDER

Verb = Literal["get", "get_range", "put", "put_new", "delete", "open_staging", "close_staging"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """The first call of a verb with a path that matches the pattern is this process's last; or the last for a while."""

    verb: Verb
    path: str
    """As for ``fnmatch``: a star matches slashes, too."""
    when: Literal["before", "half way", "after"]
    """Before the call reaches the store, once it has, or with the first half of the paths deleted."""
    signal: Signals = SIGKILL

    def strikes(self, verb: Verb, paths: Sequence[str]) -> bool:
        return verb == self.verb and any(fnmatchcase(path, self.path) for path in paths)


class RiggedBackend:
    """As the one within, with at most one fault, which happens once; notes when this writer began each of its beats."""

    def __init__(self, inner: Backend, fault: Fault | None) -> None:
        self._inner = inner
        self._fault = fault
        self.beats: list[float] = []
        """Seconds on the machine's monotonic clock, which all its processes share."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def put(self, path: str, data: bytes) -> None:
        if path.startswith(f"{HEARTBEAT_FOLDER}/"):
            self.beats.append(time.monotonic())
        await self._call("put", path, data)

    async def get(self, path: str) -> bytes:
        data: bytes = await self._call("get", path)
        return data

    async def get_range(self, path: str, start: int, length: int) -> bytes:
        data: bytes = await self._call("get_range", path, start, length)
        return data

    async def put_new(self, path: str, data: bytes) -> None:
        await self._call("put_new", path, data)

    async def open_staging(self, directory: str) -> None:
        await self._call("open_staging", directory)

    async def close_staging(self, directory: str) -> None:
        await self._call("close_staging", directory)

    async def _call(self, verb: Verb, path: str, *arguments: Any) -> Any:
        fault = self._due(verb, [path])
        self._strike(fault, "before")
        result = await getattr(self._inner, verb)(path, *arguments)
        self._strike(fault, "after")
        return result

    async def delete(self, paths: Sequence[str]) -> None:
        fault = self._due("delete", paths)
        self._strike(fault, "before")
        if fault is not None and fault.when == "half way":
            assert len(paths) > 1, f"no half of {paths}"
            await self._inner.delete(paths[: len(paths) // 2])
            self._strike(fault, "half way")
        await self._inner.delete(paths)
        self._strike(fault, "after")

    def _due(self, verb: Verb, paths: Sequence[str]) -> Fault | None:
        fault = self._fault
        if fault is None or not fault.strikes(verb, paths):
            return None
        self._fault = None
        return fault

    def _strike(self, fault: Fault | None, when: str) -> None:
        if fault is not None and fault.when == when:
            os.kill(os.getpid(), fault.signal)
