"""Run a writer in a process of its own that dies at a chosen call to storage."""

import copy
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import trio
import trio.testing

from tallymark.backends import Backend
from tallymark.engine.maintenance.recovery import PROBE
from tallymark.engine.settings import MarkerKind, MarkerSettings
from tallymark.engine.timeline.reservation import HEARTBEAT_FOLDER
from tests.engine.jobs.scene import Store
from tests.support.dying import DyingBackend, ProcessDied

Writer = Callable[[Backend, MarkerSettings], Awaitable[None]]


def run_to_death(store: Store, writer: Writer, kind: MarkerKind, *, at: int | None) -> DyingBackend:
    """Run the writer in a process of its own, until it ends, or has made its ``at``-th call to storage."""
    backend = DyingBackend(store.backend, at=at)

    async def main() -> None:
        with trio.fail_after(1e6):
            await writer(backend, MarkerSettings(kind=kind))

    try:
        trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    except BaseException as error:
        if not _is_death(error):
            raise
    assert at is None or backend.is_dead
    return backend


def wherever_it_dies(
    start: Store,
    writer: Writer,
    kind: MarkerKind,
    check: Callable[[Store], None],
    *,
    first: int = 1,
    step: int = 1,
    calls_min: int = 24,
) -> None:
    """``check`` looks at a copy of the store for each call after which the writer dies: from the ``first`` on."""
    for store, where in each_death(start, writer, kind, first=first, step=step, calls_min=calls_min):
        with told_where(f"{writer.__name__} {where}"):
            check(store)


def _is_death(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_death, error.exceptions))
    return isinstance(error, ProcessDied)


def copied(store: Store) -> Store:
    twin = Store(has_staging=store.backend.has_staging)
    twin.clock.now = store.clock.now
    twin.backend._objects = copy.copy(store.backend._objects)
    return twin


def without_probes(store: Store) -> dict[str, bytes]:
    """All that is stored, but for beats that ask the time: those of the dead are swept by the next clean."""
    return {path: data for path, data in store.objects.items() if not path.startswith(f"{HEARTBEAT_FOLDER}/{PROBE}")}


def each_death(
    start: Store,
    writer: Writer,
    kind: MarkerKind,
    *,
    first: int = 1,
    step: int = 1,
    last: int | None = None,
    calls_min: int = 1,
) -> Iterator[tuple[Store, str]]:
    """Yield copies in which the writer has died after each of its calls, from the ``first`` on, or after each of the
    ``last`` so many; and where it has.
    """
    calls = run_to_death(copied(start), writer, kind, at=None).count
    assert calls >= (last or calls_min), f"{writer.__name__} has done little"
    for at in range(first if last is None else calls - last + 1, calls + 1, step):
        store = copied(start)
        store.backend.archived |= start.backend.archived
        run_to_death(store, writer, kind, at=at)
        yield store, f"died after call {at} of {calls}"


@contextmanager
def told_where(where: str) -> Iterator[None]:
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"{where}: {error}") from error
