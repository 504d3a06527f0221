"""Sides of the question ``markers``: ours behind its service, ours without one, and Hudi's timeline server."""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

import anyio
import psutil

from tallymark.backends import open_backend
from tallymark.bench.child import Child, child
from tallymark.bench.load import Seen, Target
from tallymark.bench.markers.targets import HudiServer, OurService, OurTask, name_of
from tallymark.bench.peers.hudi_markers import delete_markers
from tallymark.bench.peers.timeline_server import HUDI, TimelineServer, timeline_server
from tallymark.bench.stores import MarkerStore
from tallymark.engine.markers import open_marker_engine
from tallymark.engine.markers.segment import is_segment, marker_folder

HEAP_MB = 4096
"""Enough for a million markers several times over, so that garbage collection does not slow Hudi's server down."""

_MARKERS = re.compile(r"MARKERS\d+")

Counts = Mapping[str, float | None]
"""``cpu_s``, ``puts``, ``sent_bytes`` of the process that makes markers durable; None where it is not known."""

Left = tuple[int, int]
"""Objects in the folder of an instant, and how many of them contain markers."""


class OpenSide(Protocol):
    """Each ``instant`` is a job that starts without markers."""

    def target(self, instant: str) -> Target: ...

    def counts(self) -> Counts: ...

    def stored(self, counts: Counts, seen: Seen) -> Counts:
        """Correct counts for what the callers have seen."""
        ...

    def settle(self, instant: str) -> Left: ...

    def delete(self, instant: str) -> float:
        """Delete the markers of an instant; return the seconds that it took."""
        ...


class Side(Protocol):
    """Opening raises OSError, SubprocessError or TallymarkError where the side cannot take part."""

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    @property
    def has_jobs(self) -> bool:
        """Whether whole jobs are measured on a near store."""
        ...

    def opened(self) -> AbstractContextManager[OpenSide]: ...


def instant(number: int) -> str:
    return f"202601010000{number:05}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedSide:
    name: str = "ours"
    title: str = "Tallymark, batched"
    has_jobs: bool = True
    store: Mapping[str, Any]
    """What the driver is given."""
    logs: Path
    opens: type = OurService

    @contextmanager
    def opened(self) -> Iterator["OpenServed"]:
        with child("tallymark.bench.markers.driver", self.logs / f"{self.name}.log") as driver:
            yield OpenServed(driver, driver.ask(self.store), self.opens)


@dataclass(frozen=True, slots=True)
class OpenServed:
    driver: Child
    address: Mapping[str, Any]
    opens: type

    def target(self, instant: str) -> Target:
        key = self.driver.ask({"key": {"instant": instant}})
        return {"open": name_of(self.opens), "instant": instant, **self.address, **key}

    def reading(self) -> dict[str, Any]:
        return self.driver.ask({"reading": {}})

    def counts(self) -> Counts:
        found = self.reading()
        return {"cpu_s": found["cpu_s"], "puts": found["puts"], "sent_bytes": found["put_bytes"]}

    def stored(self, counts: Counts, _seen: Seen) -> Counts:
        return counts

    def settle(self, instant: str) -> Left:
        found = self.driver.ask({"settle": {"instant": instant}})
        return found["objects"], found["segments"]

    def delete(self, instant: str) -> float:
        took_s: float = self.driver.ask({"delete": {"instant": instant}})["deleted_s"]
        return took_s


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSide:
    """``direct``: an empty object per marker. ``inside``: batched, by an engine in the one process of all callers."""

    mark: Literal["direct", "inside"]
    store: MarkerStore

    @property
    def name(self) -> str:
        return f"ours-{self.mark}"

    @property
    def title(self) -> str:
        return {"direct": "Tallymark, direct", "inside": "Tallymark, batched, in process"}[self.mark]

    @property
    def has_jobs(self) -> bool:
        """Direct markers are deleted one by one: only the table of a far store has their jobs."""
        return self.mark != "direct"

    @contextmanager
    def opened(self) -> Iterator["OpenTasks"]:
        yield OpenTasks(self)


@dataclass(frozen=True, slots=True)
class OpenTasks:
    side: TaskSide

    def target(self, instant: str) -> Target:
        fields = {"open": name_of(OurTask), "mark": self.side.mark, "instant": instant, **self.side.store.fields()}
        return fields if self.side.mark == "direct" else {**fields, "processes": 1}

    def counts(self) -> Counts:
        return {"cpu_s": None, "puts": None, "sent_bytes": None}

    def stored(self, counts: Counts, seen: Seen) -> Counts:
        """Count a put without a byte for each direct marker."""
        return {**counts, "puts": seen.answered, "sent_bytes": 0} if self.side.mark == "direct" else counts

    def settle(self, instant: str) -> Left:
        return anyio.run(self._left, instant, backend="trio")

    def delete(self, instant: str) -> float:
        return anyio.run(self._delete, instant, backend="trio")

    async def _left(self, instant: str) -> Left:
        folder = marker_folder(instant)
        backend = open_backend(self.side.store.url, options=self.side.store.options)
        names = [entry.path.removeprefix(f"{folder}/") async for entry in backend.list(folder)]
        return len(names), len([name for name in names if is_segment(name) or ".marker." in name])

    async def _delete(self, instant: str) -> float:
        backend = open_backend(self.side.store.url, options=self.side.store.options)
        async with open_marker_engine(backend) as engine:
            started = time.perf_counter()
            await engine.directory(instant).delete()
            return time.perf_counter() - started


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """Settings of Hudi's batches. The defaults are its own."""

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
    has_jobs: bool = True
    folder: Path
    """Of its table. Markers need a folder, not a table."""
    logs: Path
    tuning: Tuning = field(default_factory=Tuning)

    @property
    def title(self) -> str:
        return f"Hudi {HUDI}, {self.tuning}"

    @contextmanager
    def opened(self) -> Iterator["OpenHudi"]:
        self.folder.mkdir(parents=True, exist_ok=True)
        arguments = self.tuning.arguments()
        with timeline_server(self.logs / self.name, heap_mb=HEAP_MB, arguments=arguments) as server:
            yield OpenHudi(self, server)


@dataclass(frozen=True, slots=True)
class OpenHudi:
    side: HudiSide
    server: TimelineServer

    def target(self, instant: str) -> Target:
        folder = self.folder(instant)
        folder.mkdir(parents=True, exist_ok=True)
        where = {"host": "127.0.0.1", "port": self.server.port, "folder": str(folder)}
        return {"open": name_of(HudiServer), "instant": instant, **where}

    def counts(self) -> Counts:
        return counts_of(self.server.pid)

    def stored(self, counts: Counts, seen: Seen) -> Counts:
        """Subtract the answers, which it writes to its connections."""
        return {**counts, "sent_bytes": (counts["sent_bytes"] or 0) - seen.received_bytes}

    def settle(self, instant: str) -> Left:
        names = [path.name for path in self.folder(instant).iterdir()]
        return len(names), len([name for name in names if _MARKERS.fullmatch(name)])

    def delete(self, instant: str) -> float:
        folder, started = self.folder(instant), time.perf_counter()
        delete_markers(self.server.port, folder)
        took_s = time.perf_counter() - started
        assert not folder.exists(), f"{folder} is left"
        return took_s

    @property
    def port(self) -> int:
        return self.server.port

    def folder(self, instant: str) -> Path:
        """Return where its markers are stored."""
        return self.side.folder / marker_folder(instant)


def counts_of(pid: int) -> Counts:
    """Return what the system counts for a process: bytes with those that it writes to its connections by write(2)."""
    process = psutil.Process(pid)
    times = process.cpu_times()
    return {"cpu_s": times.user + times.system, "puts": None, "sent_bytes": process.io_counters().write_chars}
