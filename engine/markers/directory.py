"""The markers of one instant.

Owns: which markers are durable, which are in flight, and whether the instant still accepts markers. It decides;
``group_commit`` carries its batches to storage.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

import anyio
import anyio.lowlevel

from tallymark.backends.concurrently import at_once
from tallymark.backends.contract import Backend
from tallymark.backends.errors import BackendError
from tallymark.backends.events import EventLog
from tallymark.backends.throttling import throttling_of
from tallymark.engine.errors import Closed, FlushFailed, InvalidRequest, Overloaded, Sealed, Stopped, TallymarkError
from tallymark.engine.lazy import Lazy
from tallymark.engine.markers.ack_times import AckTimes
from tallymark.engine.markers.answer import MarkerAnswer
from tallymark.engine.markers.batch import MarkerBatch
from tallymark.engine.markers.direct import put_direct
from tallymark.engine.markers.flush import flush, until_answered
from tallymark.engine.markers.hedge import Hedge
from tallymark.engine.markers.loading import LoadedMarkers, load_markers
from tallymark.engine.markers.merge import SegmentMerge
from tallymark.engine.markers.name import MarkerName, marker_line, path_of
from tallymark.engine.markers.numbers import SegmentNumbers
from tallymark.engine.markers.pace import Pace
from tallymark.engine.markers.queue import MarkerQueue
from tallymark.engine.markers.segment import BATCHED_TYPE, TYPE_FILE, encode_segment, marker_folder
from tallymark.engine.markers.statistics import MarkerCounts
from tallymark.engine.settings import MarkerSettings

_events = EventLog(__name__)


class MarkerRequest(Protocol):
    """The part of a request that the directory reads."""

    @property
    def paths(self) -> Sequence[str]: ...

    @property
    def io(self) -> str: ...


R = TypeVar("R", bound=MarkerRequest)

Outcome = tuple[MarkerAnswer, ...] | TallymarkError

Settle = Callable[[Sequence[tuple[R, Outcome]]], Awaitable[None]]

CheckOpen = Callable[[], Awaitable[None]]


CheckPath = Callable[[str], None]


def any_path(path: str) -> None:
    """Do nothing: the check of an engine that serves no table, where a marker may name any file below the base path."""


async def always_open() -> None:
    """Do nothing: the check of an engine that serves no table, where an instant is open until it is sealed."""


class MarkerDirectory:
    """Made by ``MarkerEngine.directory``. Nothing is read or written before the first request."""

    def __init__(
        self,
        backend: Backend,
        instant: str,
        settings: MarkerSettings,
        *,
        check_open: CheckOpen = always_open,
        check_path: CheckPath = any_path,
        is_new: bool = False,
        is_plain: bool = False,
        checks_claim: bool = False,
    ) -> None:
        """``check_open`` raises if the instant has ended. It is awaited after a marker is durable and before the ack.

        ``check_path`` raises InvalidRequest for a path that is not a data file of the instant: its end deletes what is
        marked.

        ``is_new``: the caller has just reserved the instant and announces how its markers are kept. No other server
        ever serves it, so nothing is listed.

        ``is_plain``: Hudi itself may read the segments, so they lack what it would refuse (``segment``).

        ``checks_claim``: ``check_open`` relies on ``is_held``.
        """
        self._backend = backend
        self._settings = settings
        self.check_open = check_open
        self._check_path = check_path
        self._instant = instant
        self._folder = marker_folder(instant)
        self._is_new = is_new
        self._is_plain = is_plain
        self._loaded = Lazy(self._load)
        self._started = Lazy(self._start)
        self._claimed = Lazy(self._claim)
        self._numbers = SegmentNumbers(backend, self._folder, settings, checks_claim=checks_claim)
        self._durable: set[str] = set()
        """As lines of segments: ``name``."""
        self._refusal: TallymarkError | None = None
        self._patience: set[anyio.CancelScope] = set()
        self.queue = MarkerQueue(settings.queue_limit)
        self.pace = Pace(settings.interval_s, throttled_max_s=settings.throttled_interval_s_max)
        self._throttled = throttling_of(backend)
        self._throttled_count = self._throttled()
        self.counts = MarkerCounts()
        self.ack_times = AckTimes()
        self.hedge = Hedge(settings, self.counts, self.pace)
        self.merge = SegmentMerge(backend, self._numbers, settings, self.counts, is_plain=is_plain)

    async def create(self, *paths: str, io: str = "CREATE") -> tuple[MarkerAnswer, ...]:
        """Return once every marker survives a crash. Asking twice for a marker is one marker.

        A request for a marker still in flight waits for the same flush: "it existed" is an answer that must survive a
        crash too. A caller that stops waiting leaves the flush as it is.

        Raises:
            InvalidRequest: a path that could leave the table or break a segment's lines, or is not of the instant.
            Overloaded: too many markers wait; none of these was taken.
            FlushFailed: storage did not take them; asking again is safe.
            CorruptObject: what earlier servers of the instant left cannot be read.
            Sealed, RolledBack, Closed: the instant, or the engine, takes no more markers.
        """
        lines = self._lines(paths, io)
        self.counts.requests += 1
        asked = anyio.current_time()
        try:
            answers = await self._create(lines)
        except (Stopped, Overloaded) as error:
            self.counts.refused(error)
            raise
        self.ack_times.add(anyio.current_time() - asked)
        return answers

    async def create_many(self, requests: Sequence[R], settle: Settle[R]) -> None:
        """Do for each of these requests, which arrived together, what ``create`` does for one.

        Requests that wait for the same flushes wait together, with one check whether the instant is open. Each is
        accepted or refused separately. ``settle`` is awaited with all outcomes that are known at the same moment, until
        each request has its answers, or the error that ``create`` would have raised.
        """
        started = anyio.current_time()
        self.counts.requests += len(requests)

        async def record(outcomes: list[tuple[R, Outcome]]) -> None:
            took_s = anyio.current_time() - started
            for _, outcome in outcomes:
                if not isinstance(outcome, TallymarkError):
                    self.ack_times.add(took_s)
                elif isinstance(outcome, Stopped | Overloaded):
                    self.counts.refused(outcome)
            await settle(outcomes)

        async def wait(batches: tuple[MarkerBatch, ...], accepted: list[tuple[R, Outcome]]) -> None:
            error = await self._error_of(batches)
            await record(accepted if error is None else [(request, error) for request, _ in accepted])

        known, waiting = await self._take_each(requests)
        if len(waiting) == 1 and not known:  # the usual case: all are new, and travel in one batch
            [(batches, accepted)] = waiting.items()
            await wait(batches, accepted)
            return
        async with anyio.create_task_group() as tasks:  # requests that wait for different flushes wait separately
            for batches, accepted in waiting.items():
                tasks.start_soon(wait, batches, accepted)
            if known:
                await record(known)

    async def names(self) -> tuple[MarkerName, ...]:
        """Return every durable marker, in the order of their texts."""
        await self._loaded.get()
        return tuple(map(MarkerName.parse, sorted(self._durable)))

    async def paths(self) -> frozenset[str]:
        """Return the data files whose markers are durable."""
        await self._loaded.get()
        return frozenset(map(path_of, self._durable))

    async def delete(self) -> bool:
        """Seal the directory and remove it from storage. Return False if storage contained nothing."""
        self.seal()
        await self.drained()  # an object that arrived after the listing would stay permanently
        paths = [entry.path async for entry in self._backend.list(self._folder)]
        await self._backend.delete(paths)
        self._durable.clear()
        return bool(paths)

    async def is_held(self) -> bool:
        """Return whether no other server has deleted the directory since this one has accepted its first marker.

        For batched markers, after that. Raises BackendError.
        """
        return await self._numbers.are_held()

    async def drained(self) -> None:
        """Return when no request to storage is in flight any more: flushes, their second copies, a merge.

        To be called after ``seal`` or ``end``. A put that the process stopped waiting for may still arrive later.
        """
        await self.queue.drained()
        await self.hedge.drained()
        await self.merge.drained()

    def seal(self) -> None:
        """Refuse every request from now on as Sealed, including those that wait for a flush."""
        self.end(Sealed(f"{self._folder} takes no more markers: its instant is being committed or rolled back"))

    def end(self, refusal: TallymarkError) -> None:
        """Refuse all waiting and future requests with this error. The first refusal stays."""
        if self._refusal is None:
            self._refusal = refusal
        self.queue.refuse(self._refusal)
        self.merge.end()
        for scope in self._patience:
            scope.cancel()

    def observe_throttling(self) -> None:
        """Slow down if the store has throttled a request since the last call. Its backend retries such requests by
        itself.
        """
        count = self._throttled()
        if count > self._throttled_count:
            self.counts.throttled += self.pace.throttled(anyio.current_time())
        self._throttled_count = count

    async def flush(self, batch: MarkerBatch) -> None:
        """Return once the batch is durable. Raises FlushFailed."""
        if self._settings.kind == "direct":
            await put_direct(
                self._backend, self._folder, batch.lines, self._settings, self.counts, self.hedge, self.pace
            )
            self.counts.direct_markers += len(batch.lines)
        else:
            path = await self._numbers.next()
            data = encode_segment(batch.lines, is_plain=self._is_plain)
            sent = 0

            async def put() -> None:
                nonlocal sent
                sent = await flush(self._backend, path, data, self._settings, self.counts, self.hedge, self.pace)

            await (put() if self._claimed.is_loaded else at_once(put, self._claimed.get))
            if sent > 1:
                self._numbers.unclear(path)
            _events.debug("batch.flushed", path=path, markers=len(batch.lines), bytes=len(data), puts=sent)
            self.counts.marker_bytes += len(data)
            self.merge.flushed(path, data)

    def complete(self, batch: MarkerBatch) -> None:
        """Make a durable batch visible, then answer."""
        self._durable.update(batch.lines)
        self.counts.flushed(len(batch.lines))
        self.queue.settle(batch)

    def abandon(self, batch: MarkerBatch, error: TallymarkError) -> None:
        """Forget the names of a batch that is not known to be durable, then answer."""
        self.counts.batches_failed += 1
        if not isinstance(error, Closed):
            _events.warning("batch.failed", instant=self._instant, markers=len(batch.lines), reason=error)
        self.queue.settle(batch, error)

    async def _take_each(
        self, requests: Sequence[R]
    ) -> tuple[list[tuple[R, Outcome]], dict[tuple[MarkerBatch, ...], list[tuple[R, Outcome]]]]:
        """Return the requests whose outcome is known, and those that were accepted, by the batches they wait for."""
        known: list[tuple[R, Outcome]] = []
        named: list[tuple[R, list[str]]] = []
        for request in requests:
            try:
                named.append((request, self._lines(request.paths, request.io)))
            except InvalidRequest as error:
                known.append((request, error))
        waiting: dict[tuple[MarkerBatch, ...], list[tuple[R, Outcome]]] = {}
        if not named:
            return known, waiting
        try:
            await self.open()
            for request, lines in named:
                try:
                    batches, answers = self.take(lines)
                except Overloaded as error:
                    known.append((request, error))
                else:
                    waiting.setdefault(batches, []).append((request, answers))
        except TallymarkError as error:
            return known + [(request, error) for request, _ in named], {}
        return known, waiting

    def _lines(self, paths: Sequence[str], io: str) -> list[str]:
        for path in paths:
            self._check_path(path)
        return [marker_line(path, io) for path in paths]

    async def _error_of(self, batches: tuple[MarkerBatch, ...]) -> TallymarkError | None:
        """Wait until the batches are durable and the instant is seen to be open after that; return what failed."""
        try:
            await self._until_acked(batches)
        except TallymarkError as error:
            return error
        except Exception as error:  # a fault in one check must not end the waits of other requests
            _events.fault("request.failed", instant=self._instant)
            return FlushFailed(f"{self} failed: {error!r}; its log has the traceback")
        return None

    async def _create(self, lines: list[str]) -> tuple[MarkerAnswer, ...]:
        await self.open()
        batches, answers = self.take(lines)
        if not batches:
            await anyio.lowlevel.checkpoint()  # a caller in a loop of requests for known markers lets others run
        await self._until_acked(batches)
        return answers

    async def _until_acked(self, batches: tuple[MarkerBatch, ...]) -> None:
        """Return when the batches are durable and the instant is seen to be open after that. Raises what failed."""
        with self.until_over():
            for batch in batches:
                await batch.wait()
            await self.check_open()

    def take(self, lines: list[str]) -> tuple[tuple[MarkerBatch, ...], tuple[MarkerAnswer, ...]]:
        """Accept all these lines or none. Return the batches to wait for, and the answers that hold once those are
        durable.

        Raises:
            Overloaded: the limit is reached.
            Sealed, RolledBack, Closed: no more are accepted.
        """
        self._refuse_if_over()
        new = list(dict.fromkeys([line for line in lines if line not in self._durable]))
        unasked = {line for line in new if line not in self.queue}
        batches = self.queue.offer(new, retry_after_s=max(self.pace.put_s or 0.0, self.pace.interval_s, 0.1))
        return tuple(batches), tuple([_answer(line, unasked) for line in lines])

    @contextmanager
    def until_over(self) -> Iterator[None]:
        """Cancel the waits in this block, for storage too, when the directory stops accepting markers."""
        self._refuse_if_over()
        with anyio.CancelScope() as scope:
            self._patience.add(scope)
            try:
                yield
            finally:
                self._patience.discard(scope)
        self._refuse_if_over()

    def _refuse_if_over(self) -> None:
        if self._refusal is not None:
            raise type(self._refusal)(*self._refusal.args)

    async def open(self) -> None:
        """Return once lines can be accepted.

        Raises:
            FlushFailed, CorruptObject: the directory could not be read, or not be written to.
            Sealed, RolledBack, Closed: no more are accepted.
        """
        if self._started.is_loaded:
            return
        try:
            with self.until_over():
                await self._started.get()
        except BackendError as error:
            raise FlushFailed(f"{self._folder} could not be loaded: {error}") from error

    async def _load(self) -> LoadedMarkers:
        if self._is_new:
            return LoadedMarkers.of_new_instant()
        started = anyio.current_time()
        loaded = await load_markers(self._backend, self._folder, concurrency=self._settings.load_concurrency)
        self._durable = loaded.lines  # nothing becomes durable before
        _events.info(
            "markers.loaded",
            instant=self._instant,
            markers=len(loaded.lines),
            objects=loaded.object_count,
            seconds=anyio.current_time() - started,
        )
        return loaded

    async def _start(self) -> None:
        """Load the durable markers; for batched markers, announce segments and claim an incarnation.

        A job has announced them when it started. A second put would cost a request, and GCS accepts one put per object
        and second. Its server is the only one, and claims the first incarnation beside its first segment: the claim
        shows that there was a segment.
        """
        loaded = await self._loaded.get()
        if self._settings.kind == "batched":
            if not loaded.is_announced:
                path = f"{self._folder}/{TYPE_FILE}"
                await until_answered(lambda: self._backend.put(path, BATCHED_TYPE), self._settings, path)
            if self._is_new:
                return
            await self._claimed.get()
            self.pace.expected(self._numbers.claim_put_s)
            for path, size in sorted(loaded.segments.items(), key=lambda found: (len(found[0]), found[0])):
                self.merge.found(path, size)

    async def _claim(self) -> None:
        await self._numbers.claim((await self._loaded.get()).next_incarnation)

    def __repr__(self) -> str:
        moving = f"{self.queue.waiting} waiting, {self.queue.inflight} inflight"
        return f"<MarkerDirectory {self._folder} {moving}, {len(self._durable)} durable>"

    @property
    def objects(self) -> frozenset[str]:
        """Every object that this server may have put into the folder: segments, claims, and the type file."""
        return self._numbers.objects | {f"{self._folder}/{TYPE_FILE}"}

    @property
    def durable_count(self) -> int:
        return len(self._durable)

    @property
    def segment_count(self) -> int:
        """Segments that contain the markers now, as far as is known; 0 for direct markers."""
        return self.merge.segment_count


def _answer(line: str, unasked: set[str]) -> MarkerAnswer:
    """Answer CREATED to one request per marker, also among requests that name it twice, and EXISTED to the others."""
    if line not in unasked:
        return MarkerAnswer.EXISTED
    unasked.remove(line)
    return MarkerAnswer.CREATED
