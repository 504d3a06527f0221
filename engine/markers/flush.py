"""Make a batch durable."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from tallymark.backends.contract import Backend
from tallymark.backends.errors import AlreadyExists, BackendError, Unavailable
from tallymark.engine.errors import FlushFailed
from tallymark.engine.settings import MarkerSettings

T = TypeVar("T")


async def flush(backend: Backend, path: str, data: bytes, settings: MarkerSettings) -> int:
    """Return once exactly these bytes survive a crash under exactly this path; the value is the number of puts.

    Nobody else uses the path for other bytes, so a put whose answer is missing is simply repeated: an early copy that
    lands late changes nothing.

    Raises:
        FlushFailed: the store refuses, or stayed silent for all attempts. The bytes may or may not be there.
    """
    last: Exception | None = None
    for attempt in range(1, settings.flush_attempt_count + 1):
        try:
            await _bounded(settings.flush_timeout_s, backend.put_new, path, data)
        except AlreadyExists as error:
            await _expect_ours(backend, path, data, settings, error)
            return attempt
        except (Unavailable, TimeoutError) as error:
            last = error
            await anyio.sleep(settings.flush_retry_pause_s * attempt)
        except BackendError as error:
            raise FlushFailed(f"{path} could not be written: {error}") from error
        else:
            return attempt
    raise FlushFailed(f"{path}: no answer to {settings.flush_attempt_count} puts: {last}") from last


async def _expect_ours(
    backend: Backend, path: str, data: bytes, settings: MarkerSettings, cause: AlreadyExists
) -> None:
    try:
        found = await _bounded(settings.flush_timeout_s, backend.get, path)
    except (BackendError, TimeoutError) as error:
        raise FlushFailed(f"{path} exists and cannot be read back: {error}") from error
    if found != data:
        raise FlushFailed(f"{path} exists with other content: two servers use one number") from cause


async def _bounded(timeout_s: float, call: Callable[..., Awaitable[T]], *arguments: object) -> T:
    with anyio.fail_after(timeout_s):
        return await call(*arguments)
