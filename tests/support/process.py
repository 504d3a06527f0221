"""Programs that tests run, and the processes that those leave behind."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).parents[2]
"""Where the tests can be imported from."""

BOUND_S = 240.0
"""Longer than any program here takes on a loaded machine."""

POLL_S = 0.01

T = TypeVar("T")


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


def printed_by(module: str, *arguments: str | Path, bound_s: float = BOUND_S) -> list[str]:
    """The lines that a program prints which ends well."""
    command = [sys.executable, "-W", "ignore", "-m", module, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=bound_s, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


@contextmanager
def serving_program(module: str, **environment: str) -> Iterator[int]:
    """Run a server as a program, which prints its port, until the block ends. Yields the port."""
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", module],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().strip()
            assert port, f"the server did not start: python -m {module}"
            yield int(port)
        finally:
            process.kill()


def serve_while_parent_lives(serve: Callable[[], None], port: int) -> None:
    """The other side of it: print the port, and serve in a thread. Ends the process when its parent has ended."""
    parent, never = os.getppid(), threading.Event()
    threading.Thread(target=serve, daemon=True).start()
    print(port, flush=True)
    while os.getppid() == parent:
        never.wait(0.5)
    os._exit(0)


def run_until_killed(module: str, *arguments: str) -> Callable[[], None]:
    """Run a program that ends by SIGKILL. Returns a wait for all that it has left behind."""
    program = start_program(module, *arguments)
    assert program.wait(BOUND_S) == -signal.SIGKILL
    return lambda: await_descendants(program.pid)


def await_descendants(session: int) -> None:
    """Return when every process of the session is gone."""
    await_that(lambda: not members(session), f"every process of session {session} is gone")


def end_session(session: int) -> None:
    """On return no process of the session lives."""

    def killed() -> bool:
        left = members(session)
        send(signal.SIGKILL, left)
        return not left

    await_that(killed, f"every process of session {session} is dead")


def members(session: int) -> list[int]:
    """The living processes of a session; a zombie process counts as gone."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        state, _, _, theirs = _stat(int(process.name))
        if theirs == str(session) and state not in "ZX":
            found.append(int(process.name))
    return found


def await_stopped(pid: int) -> None:
    """Return when the process stands still under SIGSTOP."""
    await_that(lambda: is_stopped(pid), f"process {pid} is stopped")


def is_stopped(pid: int) -> bool:
    return _stat(pid)[0] == "T"


def send(number: signal.Signals, pids: Iterable[int]) -> None:
    """To all of these that are still there."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def await_that(true: Callable[[], T], what: str, *, poll_s: float = POLL_S) -> T:
    """Return what the condition returns once that is true; asked again and again, within BOUND_S."""
    never = threading.Event()
    for _ in range(round(BOUND_S / poll_s)):
        if value := true():
            return value
        never.wait(poll_s)
    raise TimeoutError(f"not within {BOUND_S} s: {what}")


def _stat(pid: int) -> tuple[str, str, str, str]:
    """State, parent, group and session: fields 3 to 6 of /proc/<pid>/stat; "X" of a process that is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return ("X", "", "", "")
    state, parent, group, session = text.rpartition(")")[2].split()[:4]
    return (state, parent, group, session)
