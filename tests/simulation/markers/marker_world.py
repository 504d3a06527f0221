"""A run without a table: servers of markers, their clients, readers, and quiescence at the end."""

from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial

import trio
from anyio.abc import TaskGroup

from tallymark.backends.errors import TallymarkError
from tallymark.engine.background import background_tasks
from tallymark.engine.errors import ServiceUnavailable
from tallymark.engine.markers import open_marker_engine
from tallymark.engine.markers.loading import load_markers
from tallymark.engine.markers.segment import marker_folder
from tallymark.engine.timeline.log import CommitLog
from tests.history import Acked, GaveUp, History, Refused
from tests.simulation.blocking import until_done
from tests.simulation.client import Client
from tests.simulation.fault_profile import FaultProfile
from tests.simulation.markers.marker_plan import INSTANTS, ClientPlan, MarkerPlan, MarkerVisitorPlan, RequestPlan
from tests.simulation.markers.marker_server import LOG, Server, deleted, note_loaded, paths_of, won_end
from tests.simulation.process import Process
from tests.simulation.scene import Scene
from tests.simulation.seams import simulated_machines
from tests.simulation.storage import Port

SETTLED_S = 2000.0
"""By then everything that was sent has landed, every process continues, and every time limit is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A fresh request to a server that lives, when nothing is wrong any more."""

    server: str
    instant: str
    is_over: bool
    """The server had ended the instant, or the log has: there is nothing to ack."""
    answer: str
    """``acked``, the class of the error, or nothing."""


@dataclass
class MarkerOutcome:
    """What a run leaves for its judges."""

    plan: MarkerPlan
    history: History
    at_rest: dict[str, bytes] = field(default_factory=dict)
    """Storage when all is quiet; and when each instant was deleted then."""
    deleted: dict[str, bytes] = field(default_factory=dict)
    probes: list[Probe] = field(default_factory=list)
    deletions: list[tuple[str, str, int]] = field(default_factory=list)
    """Which server has deleted which instant's directory in the middle of the play, and after how many events."""
    disturbed: set[str] = field(default_factory=set)
    occurred: Counter[str] = field(default_factory=Counter)
    job_s: float = 0.0
    steps: int = 0


def run_markers(plan: MarkerPlan) -> MarkerOutcome:
    """Play the plan to its end. Raises Stuck if a task waits permanently."""
    scene = Scene(plan)
    outcome = MarkerOutcome(plan, scene.history)
    with simulated_machines(scene):
        scene.kernel.run(partial(_play, scene, plan, outcome))
    outcome.disturbed = {process.name for process in scene.processes.values() if process.was_disturbed}
    outcome.steps = scene.kernel.step_count
    outcome.occurred = scene.objects.mishaps + scene.network.mishaps + scene.mishaps + _answers(outcome.history)
    return outcome


async def _play(scene: Scene, plan: MarkerPlan, outcome: MarkerOutcome) -> None:
    async with trio.open_nursery() as scene.nursery:
        try:
            await _act(scene, plan, outcome)
        finally:
            scene.close()


async def _act(scene: Scene, plan: MarkerPlan, outcome: MarkerOutcome) -> None:
    servers: list[Server] = []
    for number, server_plan in enumerate(plan.servers):
        server = Server(scene, number, server_plan, reads_log=plan.servers_read_the_log)
        last = servers[-1] if servers else None
        servers.append(server)
        scene.start(server.process, server.run, last)
    for number, client in enumerate(plan.clients):
        process = scene.process(f"client{number}", client.host, client.mishap)
        scene.start(process, _Client(scene, process, client, servers).run)
    for number, visitor in enumerate(plan.visitors):
        process = scene.process(f"visitor{number}", visitor.host, visitor.mishap)
        scene.start(process, _VISITS[visitor.what], scene, process, visitor)
    await trio.sleep(SETTLED_S)
    outcome.deletions = [(server.process.name, *deletion) for server in servers for deletion in server.deletions]
    await _quiesce(scene, plan, servers, outcome)


async def _quiesce(scene: Scene, plan: MarkerPlan, servers: list[Server], outcome: MarkerOutcome) -> None:
    scene.is_quiescent = True
    scene.faults = scene.network.faults = FaultProfile()
    for port in scene.ports:
        port.faults = scene.faults
    for server in servers:
        for instant in INSTANTS[: plan.instant_count]:
            await _probe(scene, server, instant, outcome)
    await trio.sleep(SETTLED_S)  # merges that the probes made due
    for instant in INSTANTS[: plan.instant_count]:
        await _alone(scene, f"reader of {instant}", partial(_load, scene, instant))
    outcome.at_rest = dict(scene.objects.data)
    for instant in INSTANTS[: plan.instant_count]:
        await _alone(scene, f"deleter of {instant}", partial(_end, scene, instant))
    outcome.deleted = dict(scene.objects.data)


async def _probe(scene: Scene, server: Server, instant: str, outcome: MarkerOutcome) -> None:
    """Send a request as a client whose server has been idle for long."""
    if server.process.has_ended.is_set() or server.engine is None:
        return
    is_over = server.has_ended(instant) or instant in _decided(scene)
    path = f"month=0/probe-of-{server.process.name}.parquet"
    answer = "nothing"

    async def request_plan(_: Process) -> None:
        nonlocal answer
        try:
            await server.create(instant, [path])
        except TallymarkError as error:
            answer = type(error).__name__
        else:
            answer = "acked"

    process = scene.process(f"probe of {server.life(instant)}", server.plan.host)
    scene.start(process, request_plan, process)
    with trio.move_on_after(PROBE_S):
        await process.has_ended.wait()
    name = server.process.name
    outcome.probes.append(Probe(server=name, instant=instant, is_over=is_over, answer=answer))


PROBE_S = 60.0
"""A load, a claim and a flush take a second, if no other request delays them."""


def _decided(scene: Scene) -> set[str]:
    return {instant for instant in INSTANTS if any(instant.encode() in data for data in _log(scene))}


def _log(scene: Scene) -> list[bytes]:
    return [data for path, data in scene.objects.data.items() if path.startswith(".hoodie/.tallymark/log/")]


async def _alone(scene: Scene, name: str, act: Callable[[Process], Awaitable[None]]) -> None:
    process = scene.process(name, "alpha")
    scene.start(process, act, process)
    await process.has_ended.wait()


async def _load(scene: Scene, instant: str, process: Process) -> None:
    await _read(scene, process, scene.port(process), instant)


async def _end(scene: Scene, instant: str, process: Process) -> None:
    port = scene.port(process)
    await won_end(scene, process, CommitLog(port, LOG), instant)
    async with open_marker_engine(port) as engine:
        await deleted(scene, process, engine.directory(instant))


class _Client:
    """A process that requests markers through the service."""

    def __init__(self, scene: Scene, process: Process, plan: ClientPlan, servers: list[Server]) -> None:
        self._scene = scene
        self._process = process
        self._plan = plan
        self._servers = servers
        self._clients: dict[tuple[int, str], Client] = {}

    async def run(self) -> None:
        async with background_tasks() as background, trio.open_nursery() as requests:
            for request_plan in self._plan.requests:
                requests.start_soon(self._request, request_plan, background)

    async def _request(self, plan: RequestPlan, background: TaskGroup) -> None:
        """One server after the other, until one of them has an answer."""
        await trio.sleep(plan.at_s)
        for number in range(plan.server, len(self._servers)):
            future = await self._asked(number, plan, background)
            if future is None or not isinstance(future.exception(), ServiceUnavailable):
                return

    async def _asked(self, number: int, plan: RequestPlan, background: TaskGroup) -> Future[None] | None:
        """What came of it; None if the client did not wait for that."""
        instant = INSTANTS[plan.instant]
        client = await self._client(number, instant, background)
        if client is None:
            return None
        request = self._scene.record_request(self._process.name, instant, paths_of(plan))
        future = client.request(paths_of(plan))
        await until_done([future], plan.patience_s)
        if not future.done():
            self._scene.record(GaveUp, request=request)
            return None
        self._scene.record_answer(request, future.exception())
        return future

    async def _client(self, number: int, instant: str, background: TaskGroup) -> Client | None:
        """A client to that server; None where it does not come up in time."""
        if (number, instant) not in self._clients:
            with trio.move_on_after(self._plan.wait_s):
                address = await self._servers[number].address(instant)
                if (number, instant) in self._clients:
                    return self._clients[number, instant]  # another request has drawn it meanwhile
                client = Client(self._scene.network, self._process, address, instant, wait_s=self._plan.wait_s)
                self._clients[number, instant] = client
                background.start_soon(client.run)
        return self._clients.get((number, instant))


async def _load_now_and_then(scene: Scene, process: Process, plan: MarkerVisitorPlan) -> None:
    faults = FaultProfile(page_size=2) if plan.is_calm else scene.faults
    port = scene.port(process, faults)
    for moment in plan.at_s:
        await trio.sleep_until(moment)
        await _read(scene, process, port, INSTANTS[plan.instant])


async def _read(scene: Scene, process: Process, port: Port, instant: str) -> None:
    before = len(scene.history.events)
    try:
        loaded = await load_markers(port, marker_folder(instant), concurrency=2)
    except TallymarkError as error:
        scene.note(process, f"cannot load {instant}: {error!r}")
    else:
        note_loaded(scene, process.name, instant, before, map(str, loaded.names))


async def _end_once(scene: Scene, process: Process, plan: MarkerVisitorPlan) -> None:
    """As an operator does with an instant whose writer seems dead: its servers may live, and learn it from the log."""
    port = scene.port(process, FaultProfile(page_size=2) if plan.is_calm else scene.faults)
    await trio.sleep_until(plan.at_s[0])
    instant = INSTANTS[plan.instant]
    if await won_end(scene, process, CommitLog(port, LOG), instant):
        await _read(scene, process, port, instant)
        async with open_marker_engine(port) as engine:
            await deleted(scene, process, engine.directory(instant))


_VISITS = {"load": _load_now_and_then, "end": _end_once}


def _answers(history: History) -> Counter[str]:
    """How requests for markers ended, in the requesters' own view."""
    counted: Counter[str] = Counter()
    for event in history.events:
        if isinstance(event, Acked):
            counted["markers only: acked"] += 1
        elif isinstance(event, Refused):
            counted[f"markers only: refused as {event.error}"] += 1
        elif isinstance(event, GaveUp):
            counted["markers only: given up"] += 1
    return counted
