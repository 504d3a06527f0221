"""Director of a round: it starts the processes again and again, and kills, stops and continues them by chance."""

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tallymark import LeaseSettings
from tests.support.place import Place
from tests.support.process import await_that, is_stopped, members, send
from tests.system.chaos.lives import live
from tests.system.chaos.plans import TABLES, Life, Plans
from tests.system.forked import Fork, Start, forking

WRITERS, READERS = 5, 1
TICK_S = 0.05
STRIKE_EVERY_S = 0.7
"""On average, over all processes."""
WATCH_EVERY_S = 3.0
"""Sooner than a new log entry can be archived."""
LOOK_EVERY_S = 0.3
"""For tasks that have stopped themselves, as their plans say."""
ORPHANED = 0.4
"""How likely the driver of such a task is killed before the task goes on."""
PAST_MAX = 20
"""Lives that have ended, whose tasks may go on."""
MERCY = 0.5
"""How likely a process is to end by itself at the end of a round."""


@dataclass(slots=True)
class Role:
    """One process at a time, whose next life begins when the last has ended."""

    name: str
    is_writer: bool
    fork: Fork | None = None
    lives: int = 0


@dataclass(slots=True)
class Director:
    folder: Path
    tables: Mapping[str, Place]
    lease: LeaseSettings
    random: Random
    outage: Callable[[Random], object] | None
    """What it may do to the store, now and then."""
    watch: Callable[[], object]
    """Called every few seconds."""
    plans: Plans = field(init=False)
    counts: Counter[str] = field(default_factory=Counter)
    _roles: list[Role] = field(init=False)
    _past: list[Fork] = field(default_factory=list)
    """Lives that have ended, whose tasks may go on."""
    _stopped: list[tuple[float, list[int]]] = field(default_factory=list)
    """Processes that stand still, and when they go on."""

    def __post_init__(self) -> None:
        self.plans = Plans(self.random)
        writers = [Role(f"writer-{number}", is_writer=True) for number in range(WRITERS)]
        self._roles = writers + [Role(f"reader-{number}", is_writer=False) for number in range(READERS)]

    @contextmanager
    def playing(self, seconds: float) -> Iterator[None]:
        """Chaos for that time, then the block, while lives come to their ends; on return no process is left."""
        pause = threading.Event()
        with forking() as start:
            until = time.monotonic() + seconds
            watch_at = look_at = 0.0
            strike_at = time.monotonic() + self.random.expovariate(1 / STRIKE_EVERY_S)
            while time.monotonic() < until:
                for role in self._roles:
                    self._keep_alive(role, start)
                if time.monotonic() > strike_at:
                    self._strike()
                    strike_at = time.monotonic() + self.random.expovariate(1 / STRIKE_EVERY_S)
                if time.monotonic() > watch_at:
                    self.watch()
                    watch_at = time.monotonic() + WATCH_EVERY_S
                if time.monotonic() > look_at:
                    self._take_charge()
                    look_at = time.monotonic() + LOOK_EVERY_S
                self._continue(time.monotonic())
                pause.wait(TICK_S)
            (self.folder / "stop").touch()
            self._continue(float("inf"))
            yield
            self._let_end()

    def _keep_alive(self, role: Role, start: Start) -> None:
        if role.fork is not None and not role.fork.has_ended:
            return
        if role.fork is not None:
            self._past.append(role.fork)
        while len(self._past) > PAST_MAX:
            self._past.pop(0).end()
        role.lives += 1
        self.counts["lives"] += 1
        life = Life(
            folder=str(self.folder),
            name=f"{role.name}-{role.lives}",
            tables={name: place.url for name, place in self.tables.items() if role.is_writer or self._keeps(name)},
            options=next(iter(self.tables.values())).options,
            lease=self.lease,
            jobs=self.plans.jobs() if role.is_writer else (),
            loop=self.random.choice(("trio", "asyncio")),
            host=self.random.choice((None, "elsewhere")),
        )
        role.fork = start(live, life)

    @staticmethod
    def _keeps(table: str) -> bool:
        return TABLES[table]["readers"] == "table"

    def _strike(self) -> None:
        role = self.random.choice(self._roles)
        if role.fork is None or role.fork.has_ended:
            return
        pid = role.fork.pid
        tasks = [each for each in members(pid) if each != pid]
        acts = ("kill driver", "kill all", "stop driver", "stop all", "kill task", "stop task", "outage")
        act = self.random.choices(acts, (4, 2, 3, 2, 4, 2, 1 if self.outage else 0))[0]
        targets = {"driver": [pid], "all": [pid, *tasks], "task": self.random.sample(tasks, min(1, len(tasks)))}
        if act == "outage" and self.outage is not None:
            self.outage(self.random)
        elif act.startswith("kill"):
            send(signal.SIGKILL, targets[act.removeprefix("kill ")])
        elif role.is_writer:  # a reader that is stopped for longer than its lease may lose its files
            stop_s = self.random.uniform(0.1, 1.6) * self.lease.expiry_s
            send(signal.SIGSTOP, targets[act.removeprefix("stop ")])
            self._stopped.append((time.monotonic() + stop_s, targets[act.removeprefix("stop ")]))
            self.counts["stops beyond the lease"] += stop_s > self.lease.expiry_s
        self.counts[act] += 1

    def _take_charge(self) -> None:
        """Of tasks that have stopped themselves."""
        known = {pid for _, pids in self._stopped for pid in pids}
        for fork in [*self._past, *(role.fork for role in self._roles if role.fork is not None)]:
            for pid in [pid for pid in members(fork.pid) if is_stopped(pid) and pid not in known]:
                self._stopped.append((time.monotonic() + self.random.uniform(0.0, 1.2) * self.lease.expiry_s, [pid]))
                self.counts["stop task"] += 1
                if self.random.random() < ORPHANED and not fork.has_ended:
                    send(signal.SIGKILL, [fork.pid])
                    self.counts["kill driver"] += 1

    def _continue(self, now: float) -> None:
        for at, pids in [each for each in self._stopped if each[0] <= now]:
            send(signal.SIGCONT, pids)
            self._stopped.remove((at, pids))

    def _let_end(self) -> None:
        """Some are killed in the middle; of the others a job's tasks end, too. One that does not end is a defect."""
        forks = [role.fork for role in self._roles if role.fork is not None]
        for fork in forks:
            if self.random.random() > MERCY and not fork.has_ended:
                os.kill(fork.pid, signal.SIGKILL)
                self.counts["kill driver"] += 1

        def over() -> bool:
            left = [pid for fork in forks for pid in members(fork.pid)]
            send(signal.SIGCONT, left)
            return not left

        try:
            await_that(over, "every writer and every task has ended", poll_s=LOOK_EVERY_S)
        except TimeoutError:
            send(signal.SIGUSR1, [fork.pid for fork in forks if not fork.has_ended])
            raise
