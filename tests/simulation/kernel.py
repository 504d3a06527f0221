"""One world of one seed: virtual time, a scheduler that the seed decides, and no thread.

Everything of the library runs here as it runs in production, on trio. The kernel owns what trio would take from the
machine: the time, the order of tasks that can run at once, and every source of chance. Between two steps of any task it
can stop a simulated process, for ever or for a while (``process``).

It reaches into trio where trio has no door: the seed of its scheduler, and the moment a task becomes able to run.
``test_kernel`` shows that both still do what is counted on here.
"""

import heapq
import random
import secrets
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Any
from unittest import mock
from uuid import UUID

import trio
from trio._core import _run

from tallymark.engine.tasks import file_name
from tests.simulation.process import Process

LIMIT_S = 40 * 3600.0
"""A run that is not over by then waits for something that will not come: no bound of the library is that long."""


class Stuck(AssertionError):
    """A task waits permanently, or nearly so."""


class Kernel:
    """Made for one run. ``at`` is how the world outside of all processes acts: storage, networks, fate."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.now = 0.0
        self.step_count = 0
        self.stuck: str | None = None
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._is_over = False
        self._root: trio.CancelScope | None = None
        self._hand: trio.lowlevel.Task | None = None
        self._in_hand: list[Callable[[], None]] = []

    def stream(self, name: str) -> random.Random:
        """A source of chance of its own for each purpose: what one draws does not change what others draw."""
        return random.Random(f"{self.seed}/{name}")

    def at(self, moment: float, act: Callable[[], None]) -> None:
        """Call ``act`` at this moment, as soon as nothing else can run. It must not raise."""
        heapq.heappush(self._events, (max(moment, self.now), next(self._numbers), act))

    def after(self, seconds: float, act: Callable[[], None]) -> None:
        self.at(self.now + seconds, act)

    def soon(self, act: Callable[[], None]) -> None:
        """Call ``act`` among the tasks that run next: it may be one that touches trio."""
        self._in_hand.append(act)
        if self._hand is not None:
            hand, self._hand = self._hand, None
            trio.lowlevel.reschedule(hand)

    def run(self, main: Callable[[], Awaitable[None]]) -> None:
        """Return when ``main`` has returned. Raises Stuck, or what it raises."""
        with self._deterministic():
            trio.run(self._guarded, main, clock=_Clock(self))
        if self.stuck:
            raise Stuck(self.stuck)

    async def _guarded(self, main: Callable[[], Awaitable[None]]) -> None:
        self.at(LIMIT_S, lambda: self._give_up(f"not over after {LIMIT_S:g} s"))
        try:
            with trio.CancelScope() as self._root:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._act_by_hand)
                    await main()
                    nursery.cancel_scope.cancel()
        finally:
            self._is_over = True  # what is left is trio's own: it waits for a wake-up of its own, not for time

    async def _act_by_hand(self) -> None:
        while True:
            while self._in_hand:
                self._in_hand.pop(0)()
            self._hand = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(lambda _: trio.lowlevel.Abort.SUCCEEDED)

    def _give_up(self, why: str) -> None:
        assert self._root is not None
        if self._root.cancel_called:
            raise Stuck(f"{why}, and cancelling does not help")
        self.stuck = why
        self._root.cancel()

    def _advance(self, deadline: float) -> None:
        """Nothing can run: go to the next moment at which something happens."""
        if self._is_over:
            return
        runnable = _run.GLOBAL_RUN_CONTEXT.runner.runq
        while self._events and self._events[0][0] <= deadline:
            self.now, _, act = heapq.heappop(self._events)
            act()
            if runnable:
                return
        if deadline == float("inf"):
            self._give_up("everybody waits, and nothing is going to happen")
        else:
            self.now = max(self.now, deadline)

    @contextmanager
    def _deterministic(self) -> Iterator[None]:
        chance = self.stream("secrets")
        with ExitStack() as patches:
            for target, name, value in [
                (_run, "_ALLOW_DETERMINISTIC_SCHEDULING", True),
                (_run, "_r", self.stream("scheduler")),
                (_run.Runner, "reschedule", self._rescheduled(_run.Runner.reschedule)),
                (secrets, "token_bytes", chance.randbytes),
                (secrets, "token_hex", lambda size: chance.randbytes(size).hex()),
                (file_name, "uuid4", lambda: UUID(bytes=chance.randbytes(16), version=4)),
            ]:
                patches.enter_context(mock.patch.object(target, name, value))
            yield

    def _rescheduled(self, reschedule: Callable[..., None]) -> Callable[..., None]:
        """Trio's own, and then the task's process may keep the task from running."""

        def wrapped(runner: Any, task: trio.lowlevel.Task, *outcome: Any) -> None:
            reschedule(runner, task, *outcome)
            self.step_count += 1
            process = Process.of(task)
            if process is not None:
                process.stepped(runner.runq)

        return wrapped


class _Clock(trio.abc.Clock):
    """Virtual clock: where trio wants to sleep because no task can run, time advances at once."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def start_clock(self) -> None:
        pass

    def current_time(self) -> float:
        return self._kernel.now

    def deadline_to_sleep_time(self, deadline: float) -> float:
        self._kernel._advance(deadline)
        return 0.0
