"""A simulated process: it can be killed, or stopped and continued, between any two steps of its tasks.

What is stopped is stopped as by SIGSTOP: its requests are under way, the answers wait, its timers run out, and when it
goes on it finds all of that at once. What is killed is stopped for ever.
"""

from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import trio

_PROCESS: ContextVar["Process | None"] = ContextVar("_PROCESS", default=None)


class ProcessDied(BaseException):
    """Ends what is left of a dead process after all has been judged. Not an Exception: nothing there handles it."""


class Process:
    """Everything that was started by ``start``, and what that has started."""

    def __init__(self, name: str, *, host: str, pid: int) -> None:
        self.name = name
        self.host = host
        self.pid = pid
        self.scope = trio.CancelScope()
        self.is_dead = False
        self.is_stopped = False
        self.is_closed = False
        """The run is over: what is left of it is to end."""
        self.respects_claims = True
        """It leaves alone the small files that others are filling."""
        self.loses_rewrite_answer = False
        """The next data file that it puts goes without an answer."""
        self.reserves_late_s = 0.0
        """So long the next reservation that it puts is on its way."""
        self.entry_fates: list[str] = []
        """What becomes of the next entries of the log that it puts."""
        self.beats_lost_at = float("inf")
        """From then on its heartbeats do not reach storage."""
        self.was_disturbed = False
        """It was killed, stopped or cancelled once."""
        self.has_ended = trio.Event()
        """It is over, in whatever way."""
        self.step_count = 0
        self.on_death: list[Callable[[], None]] = []
        self._due: dict[int, Callable[[], None]] = {}
        self._awaited: tuple[str, str, Callable[[], None], int] | None = None
        self._held: list[trio.lowlevel.Task] = []
        self._ready: deque[trio.lowlevel.Task] = deque()

    @staticmethod
    def of(task: trio.lowlevel.Task) -> "Process | None":
        return task.context.get(_PROCESS)

    @staticmethod
    def current() -> "Process | None":
        return _PROCESS.get()

    def start(self, nursery: trio.Nursery, main: Callable[..., Any], *arguments: object) -> None:
        token = _PROCESS.set(self)
        try:
            nursery.start_soon(self._main, main, *arguments)
        finally:
            _PROCESS.reset(token)

    def after_request(self, verb: str, path: str, act: Callable[[], None], *, steps: int) -> None:
        """``act`` is called that many steps after the first such request: one whose path holds ``path``.

        At none the request is on its way.
        """
        self._awaited = (verb, path, act, steps)

    def requests(self, verb: str, path: str) -> None:
        """It has sent a request to storage."""
        if self._awaited is not None and self._awaited[0] == verb and self._awaited[1] in path:
            _, _, act, steps = self._awaited
            self._awaited = None
            if steps:
                self.at_step(self.step_count + steps, act)
            else:
                act()

    def at_step(self, number: int, act: Callable[[], None]) -> None:
        """``act`` is called when its tasks have become able to run that many times. It must not run trio's code."""
        self._due[number] = act

    def kill(self) -> None:
        if not self.is_dead:
            self.is_dead = self.was_disturbed = True
            self._hold_ready()
            for act in self.on_death:
                act()
            self.has_ended.set()

    def stop(self) -> None:
        self.is_stopped = self.was_disturbed = True
        self._hold_ready()

    def go_on(self) -> None:
        self.is_stopped = False
        if not self.is_dead or self.is_closed:
            self._ready.extend(self._held)
            self._held.clear()

    def close(self) -> None:
        """The run is over. What storage says to it from now on is ProcessDied."""
        self.is_closed = True
        self.go_on()

    def stepped(self, ready: deque[trio.lowlevel.Task]) -> None:
        """The newest of the tasks that are able to run is one of ours."""
        self._ready = ready
        self.step_count += 1
        act = self._due.pop(self.step_count, None)
        if act is not None:
            act()
        if (self.is_stopped or self.is_dead) and not self.is_closed and ready and Process.of(ready[-1]) is self:
            self._held.append(ready.pop())

    def _hold_ready(self) -> None:
        if self.is_closed:
            return
        mine = [task for task in self._ready if Process.of(task) is self]
        self._held += mine
        for task in mine:
            self._ready.remove(task)

    async def _main(self, main: Callable[..., Any], *arguments: object) -> None:
        try:
            with self.scope:
                await main(*arguments)
        except BaseException:
            if not self.is_closed:
                raise
        finally:
            self.has_ended.set()

    def __repr__(self) -> str:
        state = "dead" if self.is_dead else "stopped" if self.is_stopped else "alive"
        return f"<Process {self.name} on {self.host}, {state}, {self.step_count} steps>"
