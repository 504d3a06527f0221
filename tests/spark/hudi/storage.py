"""What must be true of a table of Hudi in storage, whatever fails while it is written."""

import os
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from random import Random
from typing import ClassVar

import pytest

from tests.spark.hudi.jobs import Failed, Model, Service

UNFINISHED = r"\.hoodie/\.temp/(\.unfinished/[0-9a-f]*)?"
"""Objects that a service was putting when it was killed, on a local disk, and their folders."""

KILLS_PER_INSTANT = 4

POLL_S = 0.02


class Stored(ABC):
    """A table of Hudi, as it is in storage."""

    empty_folders: ClassVar[str] = r"\.hoodie/metadata/\.hoodie/\.temp/"
    """Those that Hudi itself leaves in place of marker directories."""

    @abstractmethod
    def names(self, below: str = "") -> list[str]:
        """Return the objects below this folder by their paths in the table, and folders with a slash at the end."""

    @abstractmethod
    def text(self, name: str) -> str:
        """Raises FileNotFoundError."""

    def files(self) -> set[str]:
        """Return the data files."""
        return {name for name in self.names() if name.endswith(".parquet") and not name.startswith(".hoodie/")}

    def marked_instants(self) -> list[str]:
        """Return the instants that have a marker directory."""
        return sorted({name.split("/")[2] for name in self.names(".hoodie/.temp/") if re.search(r"/\d{17}/", name)})

    def markers(self, instant: str) -> set[str]:
        """Return the data files that have a marker. Two listings agree around the reading."""
        for _ in range(1000):
            before = self._segments(instant)
            with suppress(FileNotFoundError):
                lines = [line for name in before for line in self.text(name).splitlines()]
                if before == self._segments(instant):
                    return {line.partition(".marker.")[0] for line in lines}
        raise TimeoutError(f"the markers of {instant} change all the time")

    def _segments(self, instant: str) -> list[str]:
        return [name for name in self.names(f".hoodie/.temp/{instant}/") if re.search(r"/MARKERS\d", name)]

    def is_pending(self, instant: str) -> bool:
        """Whether the instant is inflight on Hudi's timeline."""
        mine = re.compile(rf"\.hoodie/(timeline/)?{instant}(_\d+)?\.(.+)")
        found = {match[3] for name in self.names(".hoodie/") if (match := mine.fullmatch(name))}
        is_over = not found.isdisjoint({"commit", "deltacommit", "replacecommit"})
        return not is_over and any(state.endswith("inflight") for state in found)

    def check_is_clean(self, committed: Sequence[str], *, after_kills: bool = False) -> None:
        """Assert that each data file is named by the completed timeline, and that no marker is left.

        A service that was killed on a local disk leaves the objects that it was putting; another one deletes them when
        they are an hour old.
        """
        stray = self.files() - {*committed}
        assert not stray, f"no commit names {sorted(stray)}"
        allowed = re.compile(f"{self.empty_folders}|{UNFINISHED}" if after_kills else self.empty_folders)
        found = [name for name in self.names(".hoodie/") if ".temp/" in name or ".tallymark" in name]
        left = [name for name in found if not allowed.fullmatch(name)]
        assert not left, f"{left} are left"


@dataclass
class Disk(Stored):
    path: Path

    def names(self, below: str = "") -> list[str]:
        found = list[str]()
        for folder, folders, names in os.walk(self.path / below):  # which may change
            place = Path(folder).relative_to(self.path)
            found += [str(place / name) for name in names] + [f"{place / name}/" for name in folders]
        return found

    def text(self, name: str) -> str:
        return (self.path / name).read_text()


def check_a_failed_job_leaves_nothing(table: Model, stored: Stored, service: Service) -> None:
    """Let a job fail half way and the service be killed after it: the next write deletes each file of the job."""
    table.write("bulk_insert", 0, 200)
    before = stored.files()
    with pytest.raises(Failed, match="failed half way"):
        table.write("bulk_insert", 200, 1000, tasks=8, fails_at=799)
    service.kill()
    service.start()
    stray = stored.files() - before
    [instant] = {instant_of(file) for file in stray}
    assert stored.is_pending(instant)
    assert len(stray) > len(table.lands), "of more than one task"
    assert stray <= service.markers(table.path, instant)

    table.write("upsert", 100, 300)
    table.check_rows()
    assert not stray & stored.files()
    stored.check_is_clean(table.committed())


def instant_of(file: str) -> str:
    """Return the instant that a data file was written for, which is the end of its name."""
    return file.rpartition("_")[2].removesuffix(".parquet")


@dataclass
class Spy:
    """Compares new data files of inflight instants with the markers in storage, again and again."""

    stored: Stored
    marked: set[str] = field(default_factory=set)
    unmarked: set[str] = field(default_factory=set)
    _seen: set[str] = field(default_factory=set)

    def watch(self, is_over: threading.Event) -> None:
        while not is_over.wait(POLL_S):
            self.look()

    def look(self) -> None:
        new = self.stored.files() - self._seen
        for instant in {instant_of(file) for file in new}:
            files = {file for file in new if instant_of(file) == instant}
            marked = files & self.stored.markers(instant)
            # Hudi deletes markers once the instant is over, and those of a failed one after its files.
            remaining = (files - marked) & self.stored.files()
            self.unmarked |= remaining if self.stored.is_pending(instant) else set()
            self.marked |= marked
        self._seen |= new


@dataclass
class Killer:
    """Kills the service once it has taken markers since its start, and starts it again; some times per instant."""

    service: Service
    stored: Stored
    within: list[str] = field(default_factory=list)
    """The instant of each kill that was inflight before and after it."""
    outlived_pause: bool = False
    """Whether an instant that was inflight before the pause was so after it."""
    _random: Random = field(default_factory=lambda: Random(31))

    def kill(self, count: int, *, pause_s: float, is_over: threading.Event) -> None:
        """Kill it within instants this many times. Before the last start there is a pause."""
        while len(self.within) < count and (instant := self._next(is_over)):
            is_over.wait(self._random.uniform(0, 0.2))
            was_pending = self.stored.is_pending(instant)
            self.service.kill()
            if was_pending and self.stored.is_pending(instant):
                self.within.append(instant)
            if pause_s and len(self.within) == count:
                is_over.wait(pause_s)
                self.outlived_pause = self.stored.is_pending(instant)
            self.service.start()

    def _next(self, is_over: threading.Event) -> str | None:
        """Return an instant that has a marker more than it has now, once there is one; None if the jobs are over."""
        known = {instant: self.stored.markers(instant) for instant in self.stored.marked_instants()}
        while not is_over.wait(POLL_S):
            for instant in self.stored.marked_instants():
                if self.within.count(instant) == KILLS_PER_INSTANT:
                    continue
                if not self.stored.markers(instant) <= known.get(instant, set()):
                    return instant
        return None


def write_while_the_service_is_killed(
    table: Model, stored: Stored, service: Service, *, kills: int, pause_s: float
) -> None:
    """Write until the service was killed this many times within instants, and assert that nothing came of it."""
    is_over, spy, killer = threading.Event(), Spy(stored), Killer(service, stored)
    operations = cycle(
        [("bulk_insert", 400), ("upsert", 200), ("insert", 100), ("delete", 50), ("insert_overwrite", 9)]
    )
    table.write("bulk_insert", 0, 100)
    with ThreadPoolExecutor() as threads:
        killing = threads.submit(killer.kill, kills, pause_s=pause_s, is_over=is_over)
        spying = threads.submit(spy.watch, is_over)
        try:
            while not (killing.done() or spying.done()):
                operation, count = next(operations)
                start = max(table.rows) + (-50 if operation in ("upsert", "delete") else 1)
                table.write(operation, start, start + count, tasks=16)
        finally:
            is_over.set()
    killing.result()
    spying.result()
    table.check_rows()
    assert len(killer.within) == kills
    assert killer.outlived_pause == bool(pause_s)
    assert spy.unmarked == set()
    assert len(spy.marked & {*table.committed()}) > len(table.committed()) / 2
    stored.check_is_clean(table.committed(), after_kills=True)
