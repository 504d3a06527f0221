"""Requests that came together, carried out together: one wait, one look whether the instant is open, one answer.

Each is taken or refused by itself, as if it had come alone.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import anyio

from tallymark.backends.errors import TallymarkError
from tallymark.backends.events import EventLog
from tallymark.engine.errors import FlushFailed, InvalidRequest, Overloaded, Stopped
from tallymark.engine.markers.answer import MarkerAnswer
from tallymark.engine.markers.batch import MarkerBatch
from tallymark.engine.markers.name import marker_line

if TYPE_CHECKING:
    from tallymark.engine.markers.directory import MarkerDirectory


class MarkerRequest(Protocol):
    """As much of a request as matters here."""

    @property
    def paths(self) -> Sequence[str]: ...

    @property
    def io(self) -> str: ...


R = TypeVar("R", bound=MarkerRequest)

_events = EventLog(__name__)

Outcome = tuple[MarkerAnswer, ...] | TallymarkError

Settle = Callable[[Sequence[tuple[R, Outcome]]], Awaitable[None]]


async def create_each(directory: "MarkerDirectory", requests: Sequence[R], settle: Settle[R]) -> None:
    """As ``MarkerDirectory.create_each``."""
    together = _Together(directory, settle, anyio.current_time())
    directory.counts.requests += len(requests)
    known, waiting = await together.take(requests)
    if len(waiting) == 1 and not known:  # most often: they are new, and travel in one batch
        [(batches, taken)] = waiting.items()
        await together.wait(batches, taken)
        return
    async with anyio.create_task_group() as tasks:  # none waits for what others of them wait for
        for batches, taken in waiting.items():
            tasks.start_soon(together.wait, batches, taken)
        if known:
            await together.settle(known)


@dataclass(frozen=True, slots=True)
class _Together(Generic[R]):
    directory: "MarkerDirectory"
    tell: Settle[R]
    began: float

    async def take(
        self, requests: Sequence[R]
    ) -> tuple[list[tuple[R, Outcome]], dict[tuple[MarkerBatch, ...], list[tuple[R, Outcome]]]]:
        """Those whose end is known, and by the batches that they wait for, those that were taken."""
        known: list[tuple[R, Outcome]] = []
        named: list[tuple[R, list[str]]] = []
        for request in requests:
            try:
                named.append((request, [marker_line(path, request.io) for path in request.paths]))
            except InvalidRequest as error:
                known.append((request, error))
        waiting: dict[tuple[MarkerBatch, ...], list[tuple[R, Outcome]]] = {}
        try:
            await self.directory.open()
            for request, lines in named:
                try:
                    batches, answers = self.directory.take(lines)
                except Overloaded as error:
                    known.append((request, error))
                else:
                    waiting.setdefault(batches, []).append((request, answers))
        except TallymarkError as error:
            return known + [(request, error) for request, _ in named], {}
        return known, waiting

    async def wait(self, batches: tuple[MarkerBatch, ...], taken: list[tuple[R, Outcome]]) -> None:
        """Until the batches are durable and the instant is seen to be open then."""
        try:
            with self.directory.until_over():
                for batch in batches:
                    await batch.wait()
                await self.directory.check_open()
        except TallymarkError as error:
            taken = [(request, error) for request, _ in taken]
        except Exception as error:  # a fault of ours in one look is not to end the waits of others
            _events.fault("request.failed", instant=self.directory._instant)
            fault = FlushFailed(f"{self.directory} failed: {error!r}; its log says more")
            taken = [(request, fault) for request, _ in taken]
        await self.settle(taken)

    async def settle(self, outcomes: list[tuple[R, Outcome]]) -> None:
        took_s = anyio.current_time() - self.began
        for _, outcome in outcomes:
            if not isinstance(outcome, TallymarkError):
                self.directory.ack_times.add(took_s)
            elif isinstance(outcome, Stopped | Overloaded):
                self.directory.counts.refused(outcome)
        await self.tell(outcomes)
