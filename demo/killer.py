"""SIGKILL of writers at work: one task of this demo's Spark, or a whole driver with all the processes it started.

A writer is stopped first (SIGSTOP), so that it is certain to have a file open when it is killed.
"""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from demo.storage import Storage, attempt_of

POLL_S = 0.02
BREATH_S = 0.002
"""How long a writer that was stopped between two files runs before it is stopped again."""
FREEZES = 50
DRIVER_PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class KilledTask:
    pid: int
    attempt: str
    """As in the names of its files."""
    storage: Storage
    """Content of storage when it was dead."""

    @property
    def published(self) -> frozenset[str]:
        """Files that it had published."""
        return frozenset(path for path in self.storage.data if attempt_of(path) == self.attempt)

    @property
    def marked(self) -> frozenset[str]:
        """Files that it had marked."""
        return _of_attempt(self.storage, self.attempt)


class TaskKiller:
    """Watches Spark's Python workers during a block and kills one, once, half way through its files."""

    def __init__(self, table: Path) -> None:
        self._table = table
        self._ended = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self.killed: KilledTask | None = None

    def __enter__(self) -> Self:
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._watcher.join()

    def _watch(self) -> None:
        seen: dict[int, set[int]] = {}
        while self.killed is None and not self._ended.wait(POLL_S):
            if not _is_writing(self._table):
                continue
            writers = holders(_staging(self._table))
            for pid, inodes in writers.items():
                seen.setdefault(pid, set()).update(inodes)
            if not writers:
                continue
            storage = Storage.look(self._table)
            for pid in writers:
                attempt = _attempt_of_writer(storage, seen[pid])
                if attempt is not None and self.killed is None and _is_half_way(storage, attempt):
                    self._kill(pid, attempt)

    def _kill(self, pid: int, attempt: str) -> None:
        """Kill it as soon as it has a file open; it may end before."""
        for _ in range(FREEZES):
            freeze(lambda: {pid})
            if held_by(pid, _staging(self._table)):
                kill({pid})
                self.killed = KilledTask(pid, attempt, Storage.look(self._table))
                return
            thaw({pid})
            self._ended.wait(BREATH_S)


def kill_driver(driver: "subprocess.Popen[bytes]", table: Path, *, after_files: int) -> Storage | None:
    """Kill a driver, its JVM and its workers, once its tasks have published that many files and have others open.

    The driver leads a separate session. Returns the content of storage when all were dead; None if it ended by itself.
    """
    pause = threading.Event()
    for _ in range(int(DRIVER_PATIENCE_S / POLL_S)):
        pause.wait(POLL_S)
        if driver.poll() is not None:
            return None
        if _is_writing(table) and len(Storage.look(table).uncommitted) >= after_files:
            frozen = freeze(lambda: session_members(driver.pid))
            if holders(_staging(table)):
                end_session(driver)
                return Storage.look(table)
            thaw(frozen)
    return None


def end_session(driver: "subprocess.Popen[bytes]") -> None:
    """End the driver and every process that it has started."""
    pause = threading.Event()
    while members := session_members(driver.pid):
        kill(members)
        pause.wait(POLL_S)
    driver.wait()


def _staging(table: Path) -> Path:
    return table / ".hoodie" / ".temp"


def _is_writing(table: Path) -> bool:
    """Return whether a process may have a file open there: quick, where a check of all processes takes long."""
    return any(_staging(table).glob("*/staged/*"))


def _attempt_of_writer(storage: Storage, inodes: set[int]) -> str | None:
    """Return the task attempt that a process runs: a file keeps its inode when it is published."""
    return next((attempt_of(path) for path in storage.data if storage.files[path].inode in inodes), None)


def _is_half_way(storage: Storage, attempt: str) -> bool:
    published = sum(attempt_of(path) == attempt for path in storage.data)
    return published >= len(_of_attempt(storage, attempt)) / 2 > 0


def _of_attempt(storage: Storage, attempt: str) -> frozenset[str]:
    return frozenset(path for path in storage.markers if attempt_of(path) == attempt)


PROC = Path("/proc")


def holders(folder: Path) -> dict[int, set[int]]:
    """Return the processes that have files below a folder open, and the inodes of these files."""
    held = {int(process.name): held_by(int(process.name), folder) for process in _numbered()}
    return {pid: inodes for pid, inodes in held.items() if inodes}


def held_by(pid: int, folder: Path) -> set[int]:
    """Return the inodes of the files below a folder that a process has open; none if it has ended."""
    inodes = set()
    with suppress(OSError):  # it has ended, or is another user's
        for handle in (PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                if handle.readlink().is_relative_to(folder):
                    inodes.add(handle.stat().st_ino)
    return inodes


def session_members(session: int) -> set[int]:
    """Return the living processes of a session: its leader, and all processes that it has started."""
    return {int(process.name) for process in _numbered() if _session_of(process) == session}


def freeze(members: Callable[[], Iterable[int]]) -> set[int]:
    """Stop all of these, and those that they have started since."""
    frozen: set[int] = set()
    while new := set(members()) - frozen:
        _signal(new, signal.SIGSTOP)
        frozen |= new
    return frozen


def thaw(pids: Iterable[int]) -> None:
    _signal(pids, signal.SIGCONT)


def kill(pids: Iterable[int]) -> None:
    """Send SIGKILL: no handler runs, nothing is cleaned up."""
    _signal(pids, signal.SIGKILL)


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in sorted(pids):
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _numbered() -> list[Path]:
    return [process for process in PROC.iterdir() if process.name.isdigit()]


def _session_of(process: Path) -> int | None:
    """Return the session of a living process. The command, which is in brackets, may contain anything."""
    try:
        state, _parent, _group, session = (process / "stat").read_text().rpartition(")")[2].split()[:4]
    except (OSError, ValueError):
        return None
    return None if state in ("Z", "X") else int(session)
