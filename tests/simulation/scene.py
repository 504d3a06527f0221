"""The one world of a run: its storage, its network, its processes, and what is written down about them."""

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import count
from typing import Any, Protocol

import trio

from tallymark.engine.markers.name import MarkerIo
from tests.history import Acked, Asked, Befell, Event, History, Refused
from tests.simulation.fault_profile import FaultProfile
from tests.simulation.kernel import Kernel
from tests.simulation.network import Network
from tests.simulation.plan import Mishap
from tests.simulation.process import Process
from tests.simulation.storage import Objects, Port

START = datetime(2026, 11, 21, tzinfo=UTC)


class Clock:
    """A process's wall clock: off by some seconds, and set again at times."""

    def __init__(self, kernel: Kernel, off_s: float) -> None:
        self._kernel = kernel
        self.off_s = off_s

    def now(self) -> datetime:
        return START + timedelta(seconds=self._kernel.now + self.off_s)


class WorldPlan(Protocol):
    """What every kind of plan says of the world itself."""

    @property
    def seed(self) -> int: ...
    @property
    def has_staging(self) -> bool: ...
    @property
    def faults(self) -> FaultProfile: ...
    @property
    def body_bytes(self) -> int: ...


class Scene:
    def __init__(self, plan: WorldPlan) -> None:
        self.plan: Any = plan
        """Of any kind."""
        self.kernel = Kernel(plan.seed)
        self.history = History()
        self.objects = Objects(self.kernel, self.history, has_staging=plan.has_staging)
        self.faults = plan.faults
        self.network = Network(self.kernel, plan.faults)
        self.processes: dict[str, Process] = {}
        self.mishaps: Counter[str] = Counter()
        self.ports: list[Port] = []
        self.damaged: str | None = None
        """The instant whose markers were damaged."""
        self.preparing: set[Process] = set()
        """Those that start to write, or are visiting: they may project what they have read of the log."""
        self.is_quiescent = False
        """No mishap happens any more."""
        self._clocks: dict[Process, Clock] = {}
        self._requests = count(1)
        self._is_closed = False
        self.nursery: trio.Nursery

    def process(self, name: str, host: str, mishap: Mishap | None = None, *, clock_s: float = 0.0) -> Process:
        process = Process(name, host=host, pid=1000 + len(self.processes))
        self.processes[name] = process
        self._clocks[process] = Clock(self.kernel, clock_s)
        if self._is_closed:
            process.close()  # a dead driver that comes to its end may begin what it would have begun
        elif mishap is not None:
            disturb = partial(self._disturb, process, mishap)
            if mishap.after is None:
                process.at_step(mishap.at_step, disturb)
            else:
                process.after_request(*mishap.after, disturb, steps=mishap.at_step)
        return process

    def start(self, process: Process, main: Callable[..., Any], *arguments: object) -> None:
        process.start(self.nursery, main, *arguments)

    def port(self, process: Process, faults: FaultProfile | None = None) -> Port:
        port = Port(self.kernel, self.objects, process, faults or self.faults)
        self.ports.append(port)
        if self._is_closed:
            port.close()
        return port

    def clock(self, process: Process) -> Clock:
        return self._clocks[process]

    def record(self, kind: type[Event], **fields: Any) -> None:
        """Record that it happens now."""
        self.history.record(kind(at=self.kernel.now, **fields))

    def note(self, process: Process, what: str) -> None:
        self.record(Befell, process=process.name, what=what)

    def record_request(self, server: str, instant: str, paths: Iterable[str], io: MarkerIo = "CREATE") -> int:
        """Record that markers of these paths are requested. Returns the number of the request."""
        request, names = next(self._requests), tuple(f"{path}.marker.{io}" for path in paths)
        self.record(Asked, request=request, server=server, instant=instant, names=names)
        return request

    def record_answer(self, request: int, error: BaseException | None, answers: tuple[str, ...] = ()) -> None:
        if error is None:
            self.record(Acked, request=request, answers=answers)
        else:
            self.record(Refused, request=request, error=type(error).__name__, message=str(error))

    def lease_left_s(self, expiry_s: float) -> float:
        """Return the seconds until no writer without another heartbeat can be treated as alive."""
        folders = (".hoodie/.tallymark/beat", ".hoodie/.tallymark/open")
        beats = [entry for folder in folders for entry in self.objects.page(folder, "", 1000)]
        newest = max((entry.modified for entry in beats), default=0.0)
        return newest + expiry_s + 1.0 - self.objects.now

    def find(self, pid: int) -> Process | None:
        return next((process for process in self.processes.values() if process.pid == pid), None)

    def kill(self, process: Process) -> None:
        if not process.is_dead:
            self.mishaps["killed"] += 1
            self.note(process, "is killed")
            process.kill()

    def close(self) -> None:
        """All has been judged: whatever still runs, sleeps, hangs or is dead comes to its end, unrecorded."""
        self._is_closed = True
        self.history = History()
        self.nursery.cancel_scope.cancel()
        for process in self.processes.values():
            process.close()
        for port in self.ports:
            port.close()

    def _disturb(self, process: Process, mishap: Mishap) -> None:
        if process.is_dead or self.is_quiescent:
            return
        self.mishaps[mishap.what] += 1
        self.note(process, f"is {mishap.what}" if mishap.what != "clock jumps" else "'s clock jumps")
        match mishap.what:
            case "killed":
                process.kill()
            case "stopped":
                process.stop()
                self.kernel.after(mishap.for_s, partial(self._continue, process, mishap))
            case "cancelled":
                process.was_disturbed = True
                self.kernel.soon(process.scope.cancel)
            case "clock jumps":
                self._clocks[process].off_s += mishap.for_s

    def _continue(self, process: Process, mishap: Mishap) -> None:
        if process.is_stopped:
            self.note(process, "goes on")
            if mishap.dies_after_steps:
                process.at_step(process.step_count + mishap.dies_after_steps, partial(self.kill, process))
            process.go_on()
