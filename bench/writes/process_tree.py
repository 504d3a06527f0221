"""The CPU seconds and the memory of a process and of all that it has started: driver, JVM, Python workers, forks.

Method: user and system time out of ``/proc/PID/stat`` of every process below the root, with the time of children that
ended and were waited for. What ends between two readings is so in its parent's time, if that waited for it. PySpark's
daemon does not: what its workers took since the reading before they ended is missed. Spark ends those that were idle
for a minute. Steps are those of the kernel's clock tick, 10 ms. What has been handed to another parent would be missed.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")

ROUNDING_S = 0.005
"""Half a tick: sums of fractions differ by less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """CPU seconds, by what process took them."""

    driver_s: float
    """The root: the user's Python."""
    jvm_s: float
    """Java: driver and executors."""
    python_s: float
    """Python workers of the tasks."""
    forks_s: float
    """Short-lived children of Java that ended, as the ``chmod`` of Hadoop's local file system."""

    @property
    def total_s(self) -> float:
        return self.driver_s + self.jvm_s + self.python_s + self.forks_s


@dataclass(frozen=True, slots=True)
class _Process:
    pid: int
    parent: int
    command: str
    own_s: float
    waited_s: float
    """Of children that ended and were waited for."""

    @property
    def total_s(self) -> float:
        return self.own_s + self.waited_s


@dataclass(frozen=True, slots=True)
class Reading:
    """Of a process and of all below it, at one moment."""

    root: int
    processes: Mapping[int, _Process]

    @property
    def spent(self) -> Spent:
        """Since each process began."""
        return _sum(self.processes.values(), self.root)

    def since(self, earlier: "Reading") -> Spent:
        """In between."""
        then = _sum(
            (process for process in earlier.processes.values() if not self._has_forgotten(process, earlier)), self.root
        )
        now = self.spent
        return Spent(
            driver_s=now.driver_s - then.driver_s,
            jvm_s=now.jvm_s - then.jvm_s,
            python_s=now.python_s - then.python_s,
            forks_s=now.forks_s - then.forks_s,
        )

    def _has_forgotten(self, process: _Process, earlier: "Reading") -> bool:
        """Whether it has ended since, and its parent has not taken over what it had spent."""
        if process.pid in self.processes:
            return False
        before, after = earlier.processes.get(process.parent), self.processes.get(process.parent)
        return before is None or after is None or after.waited_s - before.waited_s < process.total_s - ROUNDING_S


def read(root: int, proc: Path = PROC) -> Reading:
    """As they stand now."""
    return Reading(root, {process.pid: process for process in _below(root, proc)})


def _sum(processes: Iterable[_Process], root: int) -> Spent:
    driver_s = jvm_s = python_s = forks_s = 0.0
    for process in processes:
        if process.pid == root:
            driver_s += process.total_s
        elif process.command == "java":
            jvm_s += process.own_s
            forks_s += process.waited_s
        else:
            python_s += process.total_s
    return Spent(driver_s=driver_s, jvm_s=jvm_s, python_s=python_s, forks_s=forks_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Peaks:
    """The most memory that one process has held so far, by what it is; 0 where there is none."""

    jvm_bytes: int
    python_bytes: int
    """Of a Python worker of the tasks."""


def peaks(root: int, proc: Path = PROC) -> Peaks:
    """Of the processes below this one that are alive: resident pages, those that it shares included (VmHWM)."""
    found = {"java": 0, "python": 0}
    for process in _below(root, proc):
        if process.pid != root:
            kind = "java" if process.command == "java" else "python"
            found[kind] = max(found[kind], peak_bytes(proc / str(process.pid) / "status"))
    return Peaks(jvm_bytes=found["java"], python_bytes=found["python"])


def peak_bytes(status: Path) -> int:
    """By ``/proc/PID/status``; 0 for a process that has ended since."""
    try:
        lines = status.read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)


def _below(root: int, proc: Path) -> Iterator[_Process]:
    processes = {process.pid: process for process in _all(proc)}
    for process in processes.values():
        ancestor = process
        while ancestor.pid != root and ancestor.parent in processes:
            ancestor = processes[ancestor.parent]
        if ancestor.pid == root:
            yield process


def _all(proc: Path) -> Iterator[_Process]:
    for folder in proc.iterdir():
        if folder.name.isdigit():
            try:
                yield _parsed((folder / "stat").read_text())
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended, and is in its parent's time


def _parsed(stat: str) -> _Process:
    """One line of proc(5): the command stands in brackets and may hold any character."""
    head, _, tail = stat.rpartition(")")
    pid, _, command = head.partition(" (")
    fields = tail.split()
    tick = os.sysconf("SC_CLK_TCK")
    user, system, waited_user, waited_system = (int(field) / tick for field in fields[11:15])
    return _Process(int(pid), int(fields[1]), command, user + system, waited_user + waited_system)
