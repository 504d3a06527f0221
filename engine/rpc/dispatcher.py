"""Dispatcher of the service: it runs the requests of all peers, grouped with those that arrived together.

Requests for markers take one task per instant; lookups of cached blocks take none.

Owns: which requests run together, and what a peer receives after a fault. Does not own: how markers become durable and
what partitions contain (``Handler``), nor how responses are sent (``server``).
"""

from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar

from anyio import CancelScope
from anyio.abc import TaskGroup

from tallymark.backends.errors import TallymarkError
from tallymark.backends.events import EventLog
from tallymark.engine.errors import ServiceUnavailable
from tallymark.engine.markers.engine import MarkerEngine
from tallymark.engine.rpc.handshake import MAC_BYTES
from tallymark.engine.rpc.job_peer import JobPeer
from tallymark.engine.rpc.messages import (
    ANSWER_OVERHEAD_BYTES,
    PIECE_OVERHEAD_BYTES,
    Ack,
    Answer,
    BlockCutter,
    Blocks,
    Commit,
    Committed,
    CreateMarkers,
    LookUp,
    Piece,
    Refusal,
    Request,
)
from tallymark.engine.rpc.peer import Peer, Send

Outcome = object
"""Outcome of a request for markers: a TallymarkError, or anything else once all its markers are durable."""

R = TypeVar("R", CreateMarkers, Commit)

Settle = Callable[[Sequence[tuple[R, Outcome]]], Awaitable[None]]

BlockOf = Callable[[str], Awaitable[bytes]]

_CACHED_COUNT_MAX = 64
"""Partitions of a lookup that is answered between two reads of the sockets. A lookup of more gets a task, so that the
requests beside it do not wait."""

_CACHED_BYTES_MAX = 65536
"""Size of such a response, for the same reason."""

_events = EventLog(__name__)


class Handler(Protocol):
    """What a service does for its peers. Subclass it; lookups and commits are refused where it does not
    implement them.

    ``job`` is the name of the peer's job: its instant, at the service in its driver.
    """

    async def create_markers(self, job: str, requests: Sequence[CreateMarkers], settle: Settle[CreateMarkers]) -> None:
        """Await ``settle`` with the outcome of each of these requests, which arrived together: as soon as it is known,
        and with as many outcomes at once as there are.

        The requests may be of several peers, so that two of them may have the same id: settle each object once. The
        responses are sent soon after ``settle`` returns. The call is cancelled when the last peer with an open request
        has disconnected.
        """
        ...

    def cached_blocks(
        self, job: str, position: int, log_hash: str, partitions: Sequence[str]
    ) -> Sequence[bytes] | None:
        """Return those blocks if none has to be read, otherwise None: then ``look_up`` is called."""
        return None

    async def look_up(self, job: str, position: int, log_hash: str) -> BlockOf:
        """Return the function that returns a partition's block as of that position; both raise TallymarkError."""
        raise ServiceUnavailable("this service answers no lookups (ViewSettings.serve)")

    async def commit(self, job: str, requests: Sequence[Commit], settle: Settle[Commit]) -> None:
        """Do as ``create_markers``: the outcome of a commit is its position in the log, or an error, after which its
        writer reads the log.
        """
        raise ServiceUnavailable("this service decides no commits")


class MarkerHandler(Handler):
    """The ``Handler`` of a marker engine: it creates markers and refuses lookups."""

    def __init__(self, engine: MarkerEngine) -> None:
        self._engine = engine

    async def create_markers(self, job: str, requests: Sequence[CreateMarkers], settle: Settle[CreateMarkers]) -> None:
        await self._engine.directory(job).create_many(requests, settle)


@dataclass(slots=True)
class ConnectionCounts:
    """Sums over the connections of one service."""

    connections: int = 0
    refused_connections: int = 0
    requests: int = 0
    inflight: int = 0


@dataclass(slots=True)
class ServiceCounts(ConnectionCounts):
    """Those of a job's service."""

    names: int = 0
    look_ups: int = 0
    refusals: int = 0


class Dispatcher:
    """Answers each request once, unless its peer has disconnected."""

    def __init__(
        self, handler: Handler, frame_bytes: int, counts: ServiceCounts, tasks: TaskGroup, send: Send[JobPeer]
    ) -> None:
        self._handler = handler
        self._counts = counts
        self._tasks = tasks
        self._send_all = send
        self._message_bytes = frame_bytes - MAC_BYTES
        overhead_bytes = ANSWER_OVERHEAD_BYTES + _CACHED_COUNT_MAX * PIECE_OVERHEAD_BYTES
        self._cached_bytes_max = min(_CACHED_BYTES_MAX, self._message_bytes - overhead_bytes)

    def start(self, asked: Sequence[tuple[JobPeer, Request]]) -> None:
        """Run the requests. Cached responses are queued on return; the others are sent when they are known."""
        for_markers: dict[str, list[tuple[JobPeer, CreateMarkers]]] = {}
        to_commit: dict[str, list[tuple[JobPeer, Commit]]] = {}
        for peer, request in asked:
            if isinstance(request, CreateMarkers):
                for_markers.setdefault(peer.job, []).append((peer, request))
            elif isinstance(request, Commit):
                to_commit.setdefault(peer.job, []).append((peer, request))
            else:
                self._start_look_up(peer, request)
        for job, requests in for_markers.items():
            self._counts.names += sum([len(request.paths) for _, request in requests])
            self._tasks.start_soon(self._run, job, requests, self._handler.create_markers)
        for job, commits in to_commit.items():
            self._tasks.start_soon(self._run, job, commits, self._handler.commit)

    async def _run(
        self,
        job: str,
        asked: Sequence[tuple[JobPeer, R]],
        handle: Callable[[str, Sequence[R], Settle[R]], Awaitable[None]],
    ) -> None:
        peer_of = {id(request): peer for peer, request in asked}

        async def settle(outcomes: Sequence[tuple[R, Outcome]]) -> None:
            responses: dict[JobPeer, list[Answer]] = {}
            for request, outcome in outcomes:
                responses.setdefault(peer_of.pop(id(request)), []).append(self._answer_to(request, outcome))
            for peer, answers in responses.items():
                if peer.is_open:
                    peer.respond(answers, ending=len(answers))
            await self._send_all(responses)

        try:
            with until_disconnected(peer_of.values()) as waiting:
                await handle(job, [request for _, request in asked], settle)
            assert waiting.cancel_called or not peer_of, f"{len(peer_of)} requests were not answered"
        except Exception as error:
            refusal = as_refusal(error, job)
            await settle([(request, refusal) for _, request in asked if id(request) in peer_of])

    def _answer_to(self, request: CreateMarkers | Commit, outcome: Outcome) -> Answer:
        if isinstance(outcome, TallymarkError):
            self._counts.refusals += 1
            return Refusal(request.id, outcome)
        if isinstance(request, Commit):
            assert isinstance(outcome, int)
            return Committed(request.id, outcome)
        return Ack(request.id)

    def _start_look_up(self, peer: JobPeer, request: LookUp) -> None:
        self._counts.look_ups += 1
        try:
            is_answered = peer.unsent_bytes <= _CACHED_BYTES_MAX and self._answer_cached(peer, request)
        except Exception:  # the lookup raises the fault again, and ends that request alone
            is_answered = False
        if not is_answered:
            self._tasks.start_soon(self._answer_look_up, peer, request)

    def _answer_cached(self, peer: JobPeer, request: LookUp) -> bool:
        """Return the whole answer if it is small and needs no wait."""
        if len(request.partitions) > _CACHED_COUNT_MAX:
            return False
        blocks = self._handler.cached_blocks(peer.job, request.position, request.hash, request.partitions)
        if blocks is None or sum(map(len, blocks)) > self._cached_bytes_max:
            return False
        peer.respond([Blocks(request.id, tuple([Piece(len(block), block) for block in blocks]))], ending=1)
        return True

    async def _answer_look_up(self, peer: JobPeer, request: LookUp) -> None:
        """Answer block by block, so that a request takes no more memory than one block and a frame."""
        with until_disconnected([peer]):
            try:
                await self._send(peer, await self._blocks(peer, request), ending=1)
            except Exception as error:
                self._counts.refusals += 1
                await self._send(peer, Refusal(request.id, as_refusal(error, peer.job)), ending=1)

    async def _blocks(self, peer: JobPeer, request: LookUp) -> Blocks:
        """Return the last answer to the request; the earlier ones are sent."""
        block_of = await self._handler.look_up(peer.job, request.position, request.hash)
        cutter = BlockCutter(request.id, self._message_bytes)
        for partition in request.partitions:
            for full in cutter.add(await block_of(partition)):
                await self._send(peer, full)
        return cutter.rest()

    async def _send(self, peer: JobPeer, answer: Answer, *, ending: int = 0) -> None:
        """Send once the peer has taken the earlier responses, and those that have waited longer."""
        async with peer.sending:
            await peer.room()
            peer.respond([answer], ending=ending)
            await self._send_all([peer])


@contextmanager
def until_disconnected(peers_of: Collection[Peer]) -> Iterator[CancelScope]:
    """Cancel the block when the last of these peers has disconnected: their requests are no longer counted."""
    with CancelScope() as scope:

        def cancel_if_disconnected() -> None:
            if not any(peer.is_open for peer in peers_of):
                scope.cancel()

        peers = {*peers_of}
        for peer in peers:
            peer.on_end.add(cancel_if_disconnected)
        try:
            yield scope
        finally:
            for peer in peers:
                peer.on_end.discard(cancel_if_disconnected)


def as_refusal(error: Exception, job: str) -> TallymarkError:
    """Return the error that the peer receives: a TallymarkError unchanged; a fault is logged with its traceback."""
    if isinstance(error, TallymarkError):
        return error
    _events.fault("request.failed", instant=job)
    return ServiceUnavailable(f"the service failed: {error!r}; its log has the traceback")
