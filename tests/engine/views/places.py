"""Where the tables of these tests lie: a memory store whose clock a test moves, or a directory of this machine."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import trio
import trio.testing

from tallymark.backends import Backend
from tallymark.backends.local import LocalBackend
from tests.backends.local_peek import LocalPeek
from tests.engine.jobs.scene import Store

HOUR_S = 3600.0


class Place(Protocol):
    @property
    def backend(self) -> Backend: ...
    @property
    def objects(self) -> Mapping[str, bytes]:
        """All that is stored, read around the library."""
        ...

    def pass_s(self, seconds: float) -> None:
        """The store's clock goes on; that of the loop does not."""
        ...

    def run(self, *main: Any) -> None:
        """An async function and its arguments, with trio."""
        ...


class InMemory(Store):
    """On virtual time."""

    def pass_s(self, seconds: float) -> None:
        self.clock.now += seconds

    def run(self, *main: Any) -> None:
        trio.run(*main, clock=trio.testing.MockClock(autojump_threshold=0))


class OnDisk:
    """On the time of this machine: instead of its clock, files grow older."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.backend = LocalBackend(root)

    @property
    def objects(self) -> dict[str, bytes]:
        return LocalPeek(self._root).objects()

    def pass_s(self, seconds: float) -> None:
        for folder, _, names in os.walk(self._root):
            for path in (Path(folder) / name for name in names):
                modified = path.stat().st_mtime - seconds
                os.utime(path, (modified, modified))

    def run(self, *main: Any) -> None:
        trio.run(*main)
