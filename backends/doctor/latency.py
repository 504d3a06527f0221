"""Latency of each verb, in sequential calls, and the clock difference to the store."""

import statistics
from collections.abc import Awaitable, Callable

import anyio

from tallymark.backends.contract import Backend
from tallymark.backends.doctor.diagnosis import Latency, Verb

SAMPLES = 20
"""Calls of each verb that are timed."""

SAMPLES_LEAST = 5
"""Calls made however slow they are: fewer give no distribution."""

VERB_S_MAX = 1.5
"""Time for the calls of one verb: of a slow store fewer are timed, so that the doctor ends in time."""


async def latencies(backend: Backend) -> list[Latency]:
    """Measure each verb, in the order of a name's life."""
    data = bytes(1000)
    created = await _timed("put_new", lambda number: backend.put_new(f"timed/{number:02}", data))
    count = created.count
    return [
        created,
        await _timed("put", lambda number: backend.put(f"timed/{number % count:02}", data)),
        await _timed("get", lambda number: backend.get(f"timed/{number % count:02}")),
        await _timed("list", lambda _: _read_listing(backend)),
        await _timed("delete", lambda number: backend.delete([f"timed/{number:02}"])),
    ]


async def clock_skew_s(backend: Backend, now: Callable[[], float]) -> float | None:
    """Return how far the store's clock is ahead of ``now``, to half the time of a put and its rounding of times.

    None where a listing does not show the object.
    """
    before = now()
    await backend.put("clock/tick", b"")
    after = now()
    modified = [entry.modified async for entry in backend.list("clock")]
    return modified[0] - (before + after) / 2 if modified else None


async def _timed(verb: Verb, call: Callable[[int], Awaitable[object]]) -> Latency:
    taken: list[float] = []
    while len(taken) < SAMPLES and (len(taken) < SAMPLES_LEAST or sum(taken) < VERB_S_MAX):
        started = anyio.current_time()
        await call(len(taken))
        taken.append(anyio.current_time() - started)
    taken.sort()
    p99_s = taken[min(len(taken) - 1, int(0.99 * len(taken)))]
    return Latency(verb, len(taken), statistics.median(taken), statistics.fmean(taken), p99_s)


async def _read_listing(backend: Backend) -> None:
    async for _ in backend.list("timed"):
        pass
