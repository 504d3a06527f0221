"""The work behind a service: what it calls for the requests of its peers, and what they are told of a fault in it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import anyio

from tallymark.backends.errors import TallymarkError
from tallymark.backends.events import EventLog
from tallymark.engine.errors import ServiceUnavailable
from tallymark.engine.rpc.messages import CreateMarkers

Outcome = object
"""Of a request for markers: a TallymarkError, or anything else once all its markers are durable."""

Settle = Callable[[Sequence[tuple[CreateMarkers, Outcome]]], Awaitable[None]]

CreateEach = Callable[[str, Sequence[CreateMarkers], Settle], Awaitable[None]]
"""create_each(instant, requests, settle) awaits ``settle`` with what came of each of these requests, which arrived
together: as soon as it is known, and of as many at once as it can.

They may be of several peers, so that two of them have the same id: each object is to be settled once. Peers hear of it
soon after ``settle`` has returned. The call is cancelled when the last of those has gone who still wait.
"""

Create = Callable[[str, Sequence[str], str], Awaitable[None]]
"""create(instant, paths, io) returns when the markers of all paths are durable, or raises a TallymarkError."""

BlockOf = Callable[[str], Awaitable[bytes]]

LookUpAt = Callable[[int, str], Awaitable[BlockOf]]
"""look_up(position, hash) returns what gives the block of a partition as of that position, or raises a TallymarkError,
as may the call for a block.
"""

BlocksAtHand = Callable[[int, str, Sequence[str]], Sequence[bytes] | None]
"""at_hand(position, hash, partitions) returns those blocks where nothing has to be waited for, else None: then
``look_up`` is asked, which may have to read some, or refuse.
"""


@dataclass(frozen=True, slots=True)
class Work:
    """All of it. Without ``look_up`` none is answered; ``at_hand`` answers faster what it would."""

    create_each: CreateEach
    look_up: LookUpAt | None = None
    at_hand: BlocksAtHand | None = None


_events = EventLog(__name__)


def one_by_one(create: Create) -> CreateEach:
    """For who makes the markers of one request at a time."""

    async def create_each(instant: str, requests: Sequence[CreateMarkers], settle: Settle) -> None:
        async def create_one(request: CreateMarkers) -> None:
            try:
                await create(instant, request.paths, request.io)
            except Exception as error:
                await settle([(request, as_refusal(error, instant))])
            else:
                await settle([(request, None)])

        async with anyio.create_task_group() as tasks:
            for request in requests:
                tasks.start_soon(create_one, request)

    return create_each


def as_refusal(error: Exception, instant: str) -> TallymarkError:
    """What a peer is told, while the error is handled: one of ours as it is, a fault with its trace in the log."""
    if isinstance(error, TallymarkError):
        return error
    _events.fault("request.failed", instant=instant)
    return ServiceUnavailable(f"the service failed: {error!r}; its log says more")
