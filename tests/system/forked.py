"""Processes that start within milliseconds: forked from one that has imported all they need, each leading a session."""

import os
import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from tests.support.process import BOUND_S, await_descendants, await_stopped, end_session, send

M = TypeVar("M")

_context = get_context("forkserver")
_context.set_forkserver_preload(
    [
        "anyio._backends._asyncio",
        "anyio._backends._trio",
        "obstore.store",
        "pyarrow.parquet",
        "tallymark.backends.local",
        "tallymark.backends.s3",
        "tallymark.engine.tasks.task_writer",
        "tallymark.engine.table",
    ]
)


@dataclass(frozen=True, slots=True)
class Crashed:
    """The program ended with an error of its own."""

    trace: str


class Fork:
    """A process that runs a program, all that it forks in turn, and the line on which all of these speak to the test.

    ``program(line, *arguments)`` is a function of a module; what it says on the line are values that can be pickled.
    """

    def __init__(self, program: Callable[..., None], *arguments: object) -> None:
        self._line, theirs = _context.Pipe()
        self._process = _context.Process(target=_lead, args=(theirs, program, arguments))
        self._process.start()
        theirs.close()
        self._unheard: deque[Any] = deque()
        self._is_over = False

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def hear(self, kind: type[M]) -> M:
        """The next value of this kind; those of others wait for their turn."""
        while not self._has(kind):
            assert self._listen(BOUND_S), f"no {kind.__name__} within {BOUND_S} s; unheard: {self._unheard}"
        value = next(value for value in self._unheard if isinstance(value, kind))
        self._unheard.remove(value)
        return value

    def has_said(self, kind: type[object]) -> bool:
        """Whether ``hear`` would not have to wait."""
        while not self._has(kind) and self._listen(0):
            pass
        return self._has(kind)

    def _has(self, kind: type[object]) -> bool:
        return any(isinstance(value, kind) for value in self._unheard)

    def _listen(self, patience_s: float) -> bool:
        """Take one value; False if none has come."""
        if not self._line.poll(patience_s):
            return False
        try:
            value = self._line.recv()
        except (EOFError, ConnectionResetError):
            raise AssertionError(f"all its processes have ended; unheard: {self._unheard}") from None
        assert not isinstance(value, Crashed), value.trace
        self._unheard.append(value)
        return True

    def tell(self, value: object) -> None:
        self._line.send(value)

    @property
    def has_ended(self) -> bool:
        """Whether the process itself has; what it has forked may live on."""
        return not self._process.is_alive()

    def kill(self) -> None:
        """SIGKILL to the process itself, not to those that it has forked. On return it is gone."""
        self.signal(signal.SIGKILL)
        assert self.wait() == -signal.SIGKILL

    def signal(self, number: signal.Signals) -> None:
        send(number, [self.pid])

    def await_stopped(self) -> None:
        await_stopped(self.pid)

    def wait(self) -> int:
        """The exit code, once the process has ended; what it has forked may live on."""
        self._process.join(BOUND_S)
        assert self._process.exitcode is not None, f"process {self.pid} goes on and on"
        return self._process.exitcode

    def await_all(self) -> None:
        """Return when what it has forked has ended, too."""
        self.wait()
        await_descendants(self.pid)

    def end(self) -> None:
        """On return nothing of it lives. May be called again."""
        if self._is_over:
            return
        self._is_over = True
        end_session(self.pid)
        self._process.join(BOUND_S)
        self._process.close()
        self._line.close()


Start = Callable[..., Fork]
"""``start(program, *arguments)``: a Fork that ends with its owner."""


@contextmanager
def forking() -> Iterator[Start]:
    """What is started here ends with the block."""
    started: list[Fork] = []

    def start(program: Callable[..., None], *arguments: object) -> Fork:
        started.append(Fork(program, *arguments))
        return started[-1]

    try:
        yield start
    finally:
        for fork in started:
            fork.end()


def _lead(line: Connection, program: Callable[..., None], arguments: tuple[object, ...]) -> None:
    """Ends without waiting for threads: those of a loop may hang in a read that nobody answers."""
    os.setsid()
    code = 1
    try:
        program(line, *arguments)
        code = 0
    except BaseException:
        with suppress(OSError):
            line.send(Crashed(traceback.format_exc()))
    finally:
        os._exit(code)
