"""Worker threads for blocking calls of vendor libraries, whose asynchronous calls do not run under trio."""

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar

T = TypeVar("T")


class Threads:
    """Worker threads for one backend, so that a store that hangs delays no other."""

    def __init__(self, count_max: int) -> None:
        """``count_max`` calls at once, in each event loop that uses the backend."""
        self._count_max = count_max
        self._limiter: RunVar[anyio.CapacityLimiter] = RunVar("threads of a backend")

    async def run(self, function: Callable[..., T], *arguments: object) -> T:
        """Return the function's result. A caller that is cancelled stops waiting; the call itself runs to its end."""
        limiter = self._limiter.get(None)
        if limiter is None:
            limiter = anyio.CapacityLimiter(self._count_max)
            self._limiter.set(limiter)
        return await anyio.to_thread.run_sync(function, *arguments, abandon_on_cancel=True, limiter=limiter)
