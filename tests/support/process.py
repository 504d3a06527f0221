"""Programs that tests run, and the processes that those leave behind."""

import os
import subprocess
import sys
import threading
from pathlib import Path

ROOT = Path(__file__).parents[2]
"""Where the tests can be imported from."""

BOUND_S = 240.0
"""Longer than any program here takes on a loaded machine."""


def start_program(module: str, *arguments: str, **environment: str) -> "subprocess.Popen[bytes]":
    """The module as a program, in a session of its own, so that all its descendants can be told by it."""
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", module, *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def await_descendants(session: int) -> None:
    """Return when every process of the session is gone."""
    never = threading.Event()
    for _ in range(round(BOUND_S / 0.1)):
        if not _members(session):
            return
        never.wait(0.1)
    raise TimeoutError(f"of session {session} still live {_members(session)}")


def _members(session: int) -> list[int]:
    """Field 6 of /proc/<pid>/stat; a zombie process counts as gone."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] not in "ZX":
            found.append(int(stat.parent.name))
    return found
