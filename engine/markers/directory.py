"""The markers of one instant.

Owns: what is durable, what is on its way, and whether the instant still takes markers. It decides; ``group_commit``
carries its batches to storage.
"""

import secrets
from collections.abc import Awaitable, Callable
from enum import Enum

import anyio.lowlevel

from tallymark.backends.contract import Backend
from tallymark.backends.errors import AlreadyExists
from tallymark.engine.errors import CorruptObject, Sealed, TallymarkError
from tallymark.engine.lazy import Lazy
from tallymark.engine.markers.batch import MarkerBatch
from tallymark.engine.markers.direct import put_direct
from tallymark.engine.markers.flush import flush
from tallymark.engine.markers.loading import LoadedMarkers, load_markers
from tallymark.engine.markers.name import MarkerName
from tallymark.engine.markers.pace import Pace
from tallymark.engine.markers.queue import MarkerQueue
from tallymark.engine.markers.segment import (
    BATCHED_TYPE,
    INCARNATION_COUNT,
    TYPE_FILE,
    claim_name,
    encode_segment,
    marker_folder,
    segment_name,
)
from tallymark.engine.markers.statistics import MarkerCounts
from tallymark.engine.settings import MarkerSettings

CheckOpen = Callable[[], Awaitable[None]]


class MarkerAnswer(Enum):
    """Both answers mean that the marker survives a crash. A refusal is an error, never an answer."""

    CREATED = "created"
    EXISTED = "existed"


async def always_open() -> None:
    """For an engine that serves no table: an instant is open until it is sealed."""
    await anyio.lowlevel.checkpoint()


class MarkerDirectory:
    """Made by ``MarkerEngine.directory``. Nothing is read or written until somebody asks."""

    def __init__(
        self, backend: Backend, instant: str, settings: MarkerSettings, *, check_open: CheckOpen = always_open
    ) -> None:
        """``check_open`` raises if the instant has ended; it is asked after a marker is durable, before the ack."""
        self._backend = backend
        self._settings = settings
        self._check_open = check_open
        self._folder = marker_folder(instant)
        self._loaded = Lazy(self._load)
        self._durable: set[MarkerName] = set()
        self._refusal: TallymarkError | None = None
        self._incarnation = 0
        self._sequence = 0
        self.queue = MarkerQueue(settings.queue_limit)
        self.pace = Pace(settings.interval_s)
        self.counts = MarkerCounts()

    async def create(self, *paths: str, io: str = "CREATE") -> tuple[MarkerAnswer, ...]:
        """Return once every marker survives a crash. Asking twice for a marker is one marker.

        A request for a marker still in flight waits for the same flush: "it existed" is an answer that must survive a
        crash too. Whoever stops waiting leaves the flush as it is.

        Raises:
            InvalidRequest: a path that could leave the table or break a segment's lines.
            Overloaded: too many markers wait; none of these was taken.
            FlushFailed: storage did not take them; asking again is safe.
            Sealed, RolledBack, Closed: the instant, or the engine, takes no more markers.
        """
        names = [MarkerName.of(path, io) for path in paths]
        self._refuse_if_over()
        await self._loaded.get()
        self._refuse_if_over()
        self.counts.requests += 1
        new = [name for name in names if name not in self._durable]
        answers = tuple(MarkerAnswer.CREATED if name in new else MarkerAnswer.EXISTED for name in names)
        for batch in self._offer(new):
            await batch.wait()
        await self._check_open()
        self._refuse_if_over()
        return answers

    async def names(self) -> tuple[MarkerName, ...]:
        """Every marker that is durable, sorted."""
        await self._loaded.get()
        return tuple(sorted(self._durable))

    async def delete(self) -> bool:
        """Seal the directory and remove it from storage; False if there was nothing."""
        self.seal()
        paths = [entry.path async for entry in self._backend.list(self._folder)]
        await self._backend.delete(paths)
        self._durable.clear()
        return bool(paths)

    def seal(self) -> None:
        """From now on every request is refused as Sealed, those that wait for a flush included."""
        self.end(Sealed(f"{self._folder} takes no more markers: its instant is being committed or rolled back"))

    def end(self, refusal: TallymarkError) -> None:
        """Refuse all that waits and all that will come. The first refusal stays."""
        if self._refusal is None:
            self._refusal = refusal
        self.queue.refuse(self._refusal)

    async def flush(self, batch: MarkerBatch) -> None:
        """Return once the batch is durable. Raises FlushFailed."""
        if self._settings.kind == "direct":
            self.counts.puts += await put_direct(self._backend, self._folder, batch.names, self._settings)
            return
        path = f"{self._folder}/{segment_name(self._incarnation, self._sequence)}"
        self._sequence += 1  # whatever happens to this put, its number is spent
        data = encode_segment(batch.names)
        self.counts.put_bytes += len(data)
        self.counts.puts += await flush(self._backend, path, data, self._settings)

    def complete(self, batch: MarkerBatch) -> None:
        """The batch is durable: make it visible, then answer."""
        self._durable.update(batch.names)
        self.counts.flushed(len(batch.names))
        self.queue.settle(batch)

    def abandon(self, batch: MarkerBatch, error: TallymarkError) -> None:
        """The batch is not known to be durable: forget its names, then answer."""
        self.counts.batches_failed += 1
        self.queue.settle(batch, error)

    def _offer(self, names: list[MarkerName]) -> list[MarkerBatch]:
        try:
            return self.queue.offer(names, retry_after_s=max(self.pace.put_s or 0.0, 0.1))
        except TallymarkError:
            self.counts.refusals += 1
            raise

    def _refuse_if_over(self) -> None:
        if self._refusal is not None:
            self.counts.refusals += 1
            raise type(self._refusal)(*self._refusal.args)

    async def _load(self) -> LoadedMarkers:
        loaded = await load_markers(self._backend, self._folder, concurrency=self._settings.load_concurrency)
        if self._settings.kind == "batched":
            await self._backend.put(f"{self._folder}/{TYPE_FILE}", BATCHED_TYPE)
            self._incarnation = await self._claim(loaded.next_incarnation)
        self._durable |= loaded.names
        return loaded

    async def _claim(self, incarnation: int) -> int:
        """An incarnation that nobody had and nobody else will get. A claim whose answer is lost is left behind."""
        while incarnation < INCARNATION_COUNT:
            try:
                await self._backend.put_new(f"{self._folder}/{claim_name(incarnation)}", secrets.token_bytes(16))
            except AlreadyExists:
                incarnation += 1
            else:
                return incarnation
        raise CorruptObject(f"{self._folder} has had {INCARNATION_COUNT} servers; roll the instant back and begin anew")

    def __repr__(self) -> str:
        moving = f"{self.queue.waiting} waiting, {self.queue.inflight} inflight"
        return f"<MarkerDirectory {self._folder} {moving}, {len(self._durable)} durable>"

    @property
    def durable_count(self) -> int:
        return len(self._durable)
