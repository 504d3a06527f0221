"""Hudi's timeline server, on a folder of this machine."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from tallymark.bench.markers.load import Seen
from tallymark.bench.markers.process import ProcessReading
from tallymark.bench.markers.rewrites import Rewrites, counting_rewrites
from tallymark.bench.markers.side import OVER_CONNECTIONS, Left, Spent
from tallymark.bench.markers.talk import Address
from tallymark.bench.peers.hudi_markers import delete_markers
from tallymark.bench.peers.timeline_server import TimelineServer, timeline_server
from tallymark.bench.peers.writers.hudi import RELEASE
from tallymark.engine.markers.segment import marker_folder

HEAP_MB = 4096
"""Enough to hold a million markers several times over: nothing is held back by its collector."""

_MARKERS = re.compile(r"MARKERS\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """What its batches go by. As they stand: its own defaults."""

    interval_ms: int = 50
    threads: int = 20

    def __str__(self) -> str:
        return f"{self.interval_ms} ms, {self.threads} threads"

    def arguments(self) -> tuple[str, ...]:
        interval, threads = str(self.interval_ms), str(self.threads)
        return ("--enable-marker-requests", "--marker-batch-interval-ms", interval, "--marker-batch-threads", threads)


@dataclass(frozen=True, slots=True, kw_only=True)
class HudiSide:
    name: str = "hudi"
    folder: Path
    """Of its table, which need not be one: markers ask for no more than a folder."""
    logs: Path
    tuning: Tuning = field(default_factory=Tuning)

    is_filled = True

    @property
    def title(self) -> str:
        return f"Hudi {RELEASE}, {self.tuning}"

    @contextmanager
    def opened(self) -> Iterator["_OpenHudi"]:
        self.folder.mkdir(parents=True, exist_ok=True)
        arguments = self.tuning.arguments()
        with (
            timeline_server(self.logs / self.name, heap_mb=HEAP_MB, arguments=arguments) as server,
            counting_rewrites() as rewrites,
        ):
            yield _OpenHudi(self, server, rewrites)


@dataclass(frozen=True, slots=True)
class _OpenHudi:
    side: HudiSide
    server: TimelineServer
    rewrites: Rewrites

    def address(self, instant: str) -> Address:
        folder = self._folder(instant)
        folder.mkdir(parents=True, exist_ok=True)
        self.rewrites.watch(folder)
        where = {"host": "127.0.0.1", "port": self.server.port, "folder": str(folder)}
        return {"program": OVER_CONNECTIONS, "talk": "hudi", "instant": instant, **where}

    def spent(self, instant: str) -> Spent:
        found = ProcessReading.of(self.server.pid)
        return Spent(
            cpu_s=found.cpu_s,
            puts=self.rewrites.count(self._folder(instant)),
            sent_bytes=found.written_bytes,
            disk_bytes=found.disk_bytes,
        )

    def to_store(self, spent: Spent, found: Seen) -> Spent:
        """Without the answers, which it writes to its connections."""
        assert spent.sent_bytes is not None, "the system tells"
        return replace(spent, sent_bytes=spent.sent_bytes - found.received_bytes)

    def settle(self, instant: str) -> Left:
        names = [path.name for path in self._folder(instant).iterdir()]
        return Left(objects=len(names), segments=len([name for name in names if _MARKERS.fullmatch(name)]))

    def delete(self, instant: str) -> float:
        folder, began = self._folder(instant), time.perf_counter()
        delete_markers(self.server.port, folder)
        took_s = time.perf_counter() - began
        assert not folder.exists(), f"{folder} is left"
        return took_s

    def _folder(self, instant: str) -> Path:
        return self.side.folder / marker_folder(instant)
