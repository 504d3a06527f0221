"""SIGKILL of writers at work: one task of this demo's Spark, or a whole driver with all the processes it started.

Processes are stopped first (SIGSTOP), so that one of them is certain to have a file open when they are killed.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from demo.storage import Storage

POLL_S = 0.005
"""Pause between two checks: a task writes a file in about 20 ms."""


def kill_while_writing(
    find: Callable[[], Iterable[psutil.Process]], table: Path, *, after_files: int, ended: Callable[[float], bool]
) -> Storage | None:
    """Kill the found processes and all that they started, once that many files are published and uncommitted, and one
    of the processes has another file open.

    Returns the content of storage when they were dead. Returns None if ``ended``, which waits for as many seconds at
    most, was true before.
    """
    while not ended(POLL_S):
        if not any(_staging(table).glob("*/staged/*")) or len(Storage.read(table).uncommitted) < after_files:
            continue
        stopped = _stop(find())
        if any(_is_writing(process, table) for process in stopped):
            end(stopped)
            return Storage.read(table)
        for process in stopped:
            with suppress(psutil.NoSuchProcess):
                process.resume()
    return None


@contextmanager
def task_killer(table: Path, *, after_files: int) -> Iterator[list[Storage]]:
    """Kill one of this Spark's Python workers during the block, once; the list then has the content of storage."""
    ended = threading.Event()
    killed: list[Storage] = []

    def watch() -> None:
        found = kill_while_writing(lambda: _a_writer(table), table, after_files=after_files, ended=ended.wait)
        killed.extend([found] if found else [])

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield killed
    finally:
        ended.set()
        watcher.join()


def end(processes: Iterable[psutil.Process]) -> None:
    """Kill these processes and all that they started, and wait until they are dead."""
    stopped = _stop(processes)
    for process in stopped:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(stopped)


def _a_writer(table: Path) -> list[psutil.Process]:
    return [each for each in psutil.Process().children(recursive=True) if _is_writing(each, table)][:1]


def _stop(processes: Iterable[psutil.Process]) -> set[psutil.Process]:
    """Stop these processes and all that they have started; a stopped one starts no other."""
    stopped: set[psutil.Process] = set()
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.suspend()
            stopped |= {process, *_stop(process.children())}
    return stopped


def _is_writing(process: psutil.Process, table: Path) -> bool:
    """Return whether a process has an unfinished file of the table open."""
    with suppress(psutil.Error):
        return any(Path(file.path).is_relative_to(_staging(table)) for file in process.open_files())
    return False


def _staging(table: Path) -> Path:
    return table / ".hoodie" / ".temp"
