"""Flush of a batch: when it returns, the batch is durable."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from tallymark.backends.contract import Backend
from tallymark.backends.errors import AlreadyExists, BackendError, NotFound, Throttled, Unavailable
from tallymark.engine.errors import FlushFailed
from tallymark.engine.markers.hedge import Hedge
from tallymark.engine.markers.pace import Pace
from tallymark.engine.markers.statistics import MarkerCounts
from tallymark.engine.settings import MarkerSettings

T = TypeVar("T")

POLL_S = 0.1
"""Longest sleep of a flush before it reads the interval again: one that a stall has made long becomes short with the
next good put.
"""


async def flush(
    backend: Backend,
    path: str,
    data: bytes,
    settings: MarkerSettings,
    counts: MarkerCounts,
    hedge: Hedge | None = None,
    pace: Pace | None = None,
) -> int:
    """Put exactly these bytes under exactly this path, durably. Return how often they were sent.

    No other process uses the path for other bytes, so a put without a response is simply repeated: an early copy that
    arrives late changes nothing. ``hedge`` sends a second copy when the first is late; ``pace`` records throttling and
    determines when to retry.

    Raises:
        FlushFailed: the store refuses, or stayed silent for all attempts. The bytes may or may not be stored.
    """
    sent = 0

    async def put() -> None:
        nonlocal sent
        sent += 1
        counts.sent(len(data))
        started = anyio.current_time()
        try:
            await backend.put_new(path, data)
        except Throttled:
            if pace is not None:
                counts.throttled += pace.throttled(anyio.current_time(), started=started)
            raise
        except AlreadyExists as error:
            if await _stored(backend, path) != data:
                raise FlushFailed(f"{path} exists with other content: two servers use one number") from error
        counts.put_times.add(anyio.current_time() - started)

    is_durable = False
    try:
        await until_answered(put if hedge is None else lambda: hedge.send(put), settings, path, pace)
        is_durable = True
    finally:
        counts.wasted_bytes += len(data) * (sent - is_durable)
    return sent


async def next_start(pace: Pace) -> None:
    """Return when the next put may be sent. Others may have been sent in between, and the interval may have changed."""
    delay_s = pace.delay_s(anyio.current_time())
    while delay_s:  # without one, no turn of the loop: it would cost each ack some 20 us
        await anyio.sleep(min(delay_s, POLL_S))
        delay_s = pace.delay_s(anyio.current_time())


async def _stored(backend: Backend, path: str) -> bytes:
    try:
        return await backend.get(path)
    except NotFound as error:  # merged away by another server of the instant: it is durable, but that cannot be shown
        raise Unavailable(f"{path} was there and is gone") from error


async def until_answered(
    request: Callable[[], Awaitable[T]], settings: MarkerSettings, path: str, pace: Pace | None = None
) -> T:
    """Return storage's answer; a request without an answer is repeated.

    A throttled request does not count as an attempt: it is repeated at the directory's pace, for as long as a silent
    store would be retried.

    Raises:
        FlushFailed: the store refuses, stayed silent for all attempts, or throttled for all that time.
    """
    last: Exception | None = None
    attempt = 0
    patient_until = anyio.current_time() + settings.flush_timeout_s * settings.flush_attempt_count
    while attempt < settings.flush_attempt_count and anyio.current_time() < patient_until:
        try:
            with anyio.fail_after(settings.flush_timeout_s):
                return await request()
        except (Unavailable, TimeoutError) as error:
            last = error
            if pace is not None and isinstance(error, Throttled):
                await next_start(pace)
                pace.started(anyio.current_time())
                continue
            attempt += 1
            if attempt < settings.flush_attempt_count:
                await anyio.sleep(settings.flush_retry_pause_s * attempt)
        except BackendError as error:
            raise FlushFailed(f"{path} could not be written: {error}") from error
    silence = str(last) or f"none within {settings.flush_timeout_s} s"
    raise FlushFailed(f"{path}: no answer to {settings.flush_attempt_count} attempts: {silence}") from last
