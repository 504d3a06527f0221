"""A server of markers as an embedder would write one: an engine on its way to storage, and the service beside it.

An engine lives shorter than its process here, and a directory shorter than its engine. Each such life has a name of its
own in the history: what one life has promised, the next one knows from storage only.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress

import trio

from tallymark.backends.errors import TallymarkError
from tallymark.engine.errors import Closed, CommitUnknown, Overloaded, RolledBack
from tallymark.engine.markers import MarkerAnswer, MarkerDirectory, MarkerEngine, open_marker_engine
from tallymark.engine.rpc.dispatcher import Handler, Settle
from tallymark.engine.rpc.handshake import ServiceAddress
from tallymark.engine.rpc.messages import CreateMarkers
from tallymark.engine.rpc.server import JobServer
from tallymark.engine.settings import CommitSettings, ServiceSettings
from tallymark.engine.timeline.entry import LogEntry
from tallymark.engine.timeline.log import CommitLog, new_nonce
from tests.history import Ended, GaveUp, Loaded
from tests.simulation.markers.marker_plan import INSTANTS, ActPlan, RequestPlan, ServerPlan
from tests.simulation.process import Process
from tests.simulation.scene import Scene

TAKEOVER_S = 20.0
"""After that a server that was to follow another takes that one for dead."""
LOG = CommitSettings(decision_timeout_s=60.0, retry_pause_s=0.5)


class _Handler(Handler):
    def __init__(
        self, create_many: Callable[[str, Sequence[CreateMarkers], Settle[CreateMarkers]], Awaitable[None]]
    ) -> None:
        self._create_many = create_many

    async def create_markers(self, job: str, requests: Sequence[CreateMarkers], settle: Settle[CreateMarkers]) -> None:
        await self._create_many(job, requests, settle)


class Server:
    """One server's process; ``run`` is its main task."""

    def __init__(self, scene: Scene, number: int, plan: ServerPlan, *, reads_log: bool) -> None:
        self.plan = plan
        self.process = scene.process(f"server{number}", plan.host, plan.mishap)
        self.engine: MarkerEngine | None = None
        self._scene = scene
        self._port = scene.port(self.process)
        self._log = CommitLog(self._port, LOG)
        self._reads_log = reads_log
        self._lives: Counter[str] = Counter()
        self._closing = trio.Event()
        self._opened = trio.Event()
        self._pause_s = 0.0
        self._service = JobServer(
            bytes(32),
            ServiceSettings(host=plan.host),
            _Handler(self.create_many),
            shutdown_error=Closed("this server has ended") if plan.sends_shutdown_error else None,
        )
        self.deletions: list[tuple[str, int]] = []
        """Instants whose directory this server has deleted, and how many events had happened by then."""
        self._serves = trio.Event()
        self._addresses: dict[str, ServiceAddress] = {}
        self._begun: dict[str, int] = {}
        """Events of the history before the first request of each life: what was acked by then it must know."""

    async def run(self, last: "Server | None") -> None:
        """Serve until cancelled: an undisturbed server runs to the end."""
        if last is not None and self.plan.waits_for_last:
            with trio.move_on_after(TAKEOVER_S):
                await last.process.has_ended.wait()
        await trio.sleep(self.plan.start_s)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_engine)
            await self._opened.wait()
            await nursery.start(self._service.run)
            self._addresses = {instant: self._service.address(instant) for instant in INSTANTS}
            self._serves.set()
            for request_plan in self.plan.requests:
                nursery.start_soon(self._request, request_plan)
            for act in self.plan.acts:
                nursery.start_soon(self._act, act)

    async def address(self, instant: str) -> ServiceAddress:
        """Waits until there is one."""
        await self._serves.wait()
        return self._addresses[instant]

    def life(self, instant: str) -> str:
        """The name of the directory that serves an instant now."""
        return f"{self.process.name}.{self._lives[instant]}/{instant}"

    def has_ended(self, instant: str) -> bool:
        return any(end.server == self.life(instant) for end in self._scene.history.of(Ended))

    async def create(self, instant: str, paths: Sequence[str]) -> None:
        """Ask the engine, and write down what comes of it. Raises what it raises."""
        request = self._scene.record_request(self.life(instant), instant, paths)
        try:
            answers = await self._directory(instant).create(*paths)
        except TallymarkError as error:
            self._record(request, error)
            raise
        except trio.Cancelled:
            self._scene.record(GaveUp, request=request)
            raise
        self._record(request, answers)

    def _directory(self, instant: str) -> MarkerDirectory:
        if self.engine is None:
            raise Closed("no engine is open here")
        self._begun.setdefault(self.life(instant), len(self._scene.history.events))
        if self._reads_log:
            return self.engine.directory(instant, check_open=self._check_open(instant))
        return self.engine.directory(instant)

    def _check_open(self, instant: str) -> Callable[[], Awaitable[None]]:
        async def check_open() -> None:
            if (await self._log.refresh()).decision(instant) is not None:
                raise RolledBack(f"instant {instant} was ended")

        return check_open

    async def create_many(self, instant: str, requests: Sequence[CreateMarkers], settle: Settle[CreateMarkers]) -> None:
        """As ``create``, for requests that came together."""
        life = self.life(instant)
        numbers = {id(request): self._scene.record_request(life, instant, request.paths) for request in requests}

        async def record(outcomes: Sequence[tuple[CreateMarkers, tuple[MarkerAnswer, ...] | TallymarkError]]) -> None:
            for request, outcome in outcomes:
                self._record(numbers.pop(id(request)), outcome)
            await settle(outcomes)

        try:
            await self._directory(instant).create_many(requests, record)
        except TallymarkError as error:  # no engine is open
            for number in numbers.values():
                self._record(number, error)
            raise
        except trio.Cancelled:
            for number in numbers.values():
                self._scene.record(GaveUp, request=number)
            raise

    def _record(self, request: int, outcome: tuple[MarkerAnswer, ...] | TallymarkError) -> None:
        if isinstance(outcome, TallymarkError):
            self._scene.mishaps["refused as overloaded"] += isinstance(outcome, Overloaded)
            self._scene.record_answer(request, outcome)
        else:
            self._scene.record_answer(request, None, tuple(answer.value for answer in outcome))

    async def _keep_engine(self) -> None:
        while True:
            async with open_marker_engine(self._port, self.plan.settings) as self.engine:
                self._opened.set()
                try:
                    await self._closing.wait()
                finally:
                    self._ended("Closed", INSTANTS)
            self.engine = None
            await trio.sleep(self._pause_s)
            self._closing = trio.Event()
            for instant in INSTANTS:
                self._lives[instant] += 1

    def _ended(self, error: str, instants: Sequence[str]) -> None:
        for instant in instants:
            self._scene.record(Ended, server=self.life(instant), error=error)

    async def _request(self, plan: RequestPlan) -> None:
        await trio.sleep(plan.at_s)
        with trio.move_on_after(plan.patience_s), suppress(TallymarkError):  # the history says what came of it
            await self.create(INSTANTS[plan.instant], paths_of(plan))

    async def _act(self, plan: ActPlan) -> None:
        await trio.sleep(plan.at_s)
        instant = INSTANTS[plan.instant]
        if self.engine is None or self._closing.is_set():
            return
        self._scene.mishaps[f"a server's directories: {plan.what}"] += 1
        match plan.what:
            case "seal":
                directory = self._directory(instant)
                self._ended("Sealed", [instant])
                directory.seal()
            case "forget":
                self._ended("Closed", [instant])
                self.engine.forget(instant)
                self._lives[instant] += 1
            case "close":
                self._pause_s = plan.pause_s
                self._closing.set()
            case "names":
                await self._read(instant)
            case "delete":
                await self._end(instant)

    async def _read(self, instant: str) -> None:
        life = self.life(instant)
        try:
            names = await self._directory(instant).names()
        except TallymarkError as error:
            self._scene.note(self.process, f"cannot read its markers: {error!r}")
            return
        note_loaded(self._scene, life, instant, self._begun[life], map(str, names))

    async def _end(self, instant: str) -> None:
        """End the instant in the order of the protocol: the log first, then the seal, then the markers."""
        if not await won_end(self._scene, self.process, self._log, instant):
            return
        if self.engine is not None and not self._closing.is_set():
            directory = self._directory(instant)
            self._ended("Sealed", [instant])
            if await deleted(self._scene, self.process, directory):
                self.deletions.append((instant, len(self._scene.history.events)))


async def won_end(scene: Scene, process: Process, log: CommitLog, instant: str) -> bool:
    """Decide the instant by an entry of the log; False where that is not known to be done."""
    entry = LogEntry(kind="rollback", instant=instant, nonce=new_nonce(), base=0, operation="rollback")
    try:
        await log.win(entry, check=lambda history: None)
    except RolledBack:
        return True
    except (CommitUnknown, TallymarkError) as error:
        scene.note(process, f"cannot end {instant}: {error!r}")
        return False
    return True


async def deleted(scene: Scene, process: Process, directory: MarkerDirectory) -> bool:
    """Whether it was, after some patience with storage."""
    for _ in range(5):
        try:
            await directory.delete()
        except TallymarkError as error:
            scene.note(process, f"cannot delete {directory!r}: {error!r}")
            await trio.sleep(0.5)
        else:
            scene.note(process, f"has deleted {directory!r}")
            return True
    return False


def note_loaded(scene: Scene, reader: str, instant: str, events_before: int, names: Iterable[str]) -> None:
    scene.record(Loaded, reader=reader, instant=instant, events_before=events_before, names=frozenset(names))


def paths_of(plan: RequestPlan) -> list[str]:
    return [f"month={name % 3}/f{name}.parquet" for name in plan.names]
