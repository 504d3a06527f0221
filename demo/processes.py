"""Processes, as ``/proc`` tells of them: who has a file open, who belongs to whom; and how they are ended."""

import os
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")


def holders(folder: Path) -> dict[int, set[int]]:
    """The processes that have files below a folder open, and the inodes of these files."""
    held = {int(process.name): held_by(int(process.name), folder) for process in _numbered()}
    return {pid: inodes for pid, inodes in held.items() if inodes}


def held_by(pid: int, folder: Path) -> set[int]:
    """Inodes of the files below a folder that a process has open; none if it has ended."""
    inodes = set()
    with suppress(OSError):  # ended meanwhile, or another user's
        for handle in (PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                if handle.readlink().is_relative_to(folder):
                    inodes.add(handle.stat().st_ino)
    return inodes


def session_members(session: int) -> set[int]:
    """The living processes of a session: a process that leads one, and all that it has started."""
    return {int(process.name) for process in _numbered() if _session_of(process) == session}


def freeze(members: Callable[[], Iterable[int]]) -> set[int]:
    """Stop all of these where they are, and those that they have started meanwhile."""
    frozen: set[int] = set()
    while new := set(members()) - frozen:
        _signal(new, signal.SIGSTOP)
        frozen |= new
    return frozen


def thaw(pids: Iterable[int]) -> None:
    _signal(pids, signal.SIGCONT)


def kill(pids: Iterable[int]) -> None:
    """SIGKILL: no handler runs, nothing is tidied up."""
    _signal(pids, signal.SIGKILL)


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in sorted(pids):
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _numbered() -> list[Path]:
    return [process for process in PROC.iterdir() if process.name.isdigit()]


def _session_of(process: Path) -> int | None:
    """The session of a living process. The command, which stands in brackets, may hold anything."""
    try:
        state, _parent, _group, session = (process / "stat").read_text().rpartition(")")[2].split()[:4]
    except (OSError, ValueError):
        return None
    return None if state in ("Z", "X") else int(session)
