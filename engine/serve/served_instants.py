"""Instants of one table whose markers this server has in memory: one of any number of servers, none of which puts a
heartbeat.

Nothing but storage says whether an instant takes markers. A server claims an incarnation in the marker directory before
it takes the first one, and the process that ends the instant overwrites or deletes the claims before it reads the
directory.

- *The first ack follows a look at the instant, which follows the claim*: if the instant was open then, its end comes
  later and finds the claim.
- *Each ack follows a look at the claim, which follows the put*: while the claim is there, the reading has not started,
  and so includes the marker.
"""

from collections.abc import Awaitable, Callable
from functools import partial

import anyio.lowlevel

from tallymark.engine.lazy import Lazy
from tallymark.engine.markers.directory import CheckPath, any_path
from tallymark.engine.markers.engine import MarkerEngine
from tallymark.engine.serve.logs import no_request
from tallymark.engine.serve.memory import INSTANT_BYTES, MARKER_BYTES, Memory, Users

Check = Callable[["ServedInstant"], Awaitable[None]]


class ServedInstant:
    """An instant that this server takes markers of."""

    def __init__(
        self,
        engine: MarkerEngine,
        instant: str,
        check_open: Check,
        lost: Check,
        *,
        check_path: CheckPath = any_path,
        is_plain: bool = False,
        is_again: bool = False,
    ) -> None:
        """``check_open`` raises if the instant is not open, and ``lost`` the error for requests whose claim is gone.
        ``is_plain`` and ``check_path`` as of ``MarkerDirectory``.
        """
        self.instant = instant
        self.directory = engine.directory(
            instant,
            check_open=_Shared(self._check_held),
            check_path=check_path,
            is_plain=is_plain,
            checks_claim=True,
        )
        self.is_again = is_again
        """Whether this server had a directory of it that is deleted, and may have put something after that."""
        self.users = Users()
        self._lost = lost
        self._opened = Lazy(partial(check_open, self))
        self._claimed = Lazy(partial(check_open, self))

    async def open(self) -> None:
        """Check that the instant is open, the first time: otherwise nothing is put, not even a claim."""
        await self._opened.get()

    @property
    def memory_bytes(self) -> int:
        return INSTANT_BYTES + MARKER_BYTES * self.directory.durable_count

    async def _check_held(self) -> None:
        if not await self.directory.is_held():
            await self._lost(self)
        await self._claimed.get()


class ServedInstants:
    """Instants by their timestamps.

    One whose writer has died is never ended here: it stays until the memory is needed.
    """

    def __init__(self, engine: MarkerEngine, memory: Memory, serve: Callable[[str, bool], ServedInstant]) -> None:
        """``serve`` makes the value of an instant; its second argument is ``is_again``."""
        self._engine = engine
        self._memory = memory
        self._serve = serve
        self._served: dict[str, ServedInstant] = {}

    @property
    def is_empty(self) -> bool:
        return not self._served

    def find(self, instant: str) -> ServedInstant | None:
        return self._served.get(instant)

    def get(self, instant: str) -> ServedInstant:
        """Return the instant, for a request that uses it. Raises Overloaded where there is no memory for one more."""
        served = self._served.get(instant) or self.add(instant)
        self._memory.used(served)
        return served

    def add(self, instant: str, *, is_again: bool = False) -> ServedInstant:
        """Return the instant, served from now on. Raises Overloaded where there is no memory for one more."""
        if not is_again:  # otherwise it takes the place of one that was forgotten
            self._memory.check_room()
        with no_request():  # its tasks serve others, too
            served = self._served[instant] = self._serve(instant, is_again)

        def release() -> None:
            if served.users.is_idle and served.users.idle_s() >= self._memory.recent_s:
                self.forget(served)

        self._memory.add(served, lambda: served.memory_bytes, release)
        return served

    def forget(self, served: ServedInstant) -> bool:
        """Drop what is in memory of the instant. Return False if that is no longer what it is served by."""
        if self._served.get(served.instant) is not served:
            return False
        del self._served[served.instant]
        self._memory.forget(served)
        self._engine.forget(served.instant)
        return True

    def forget_all(self) -> None:
        for served in [*self._served.values()]:
            self.forget(served)


class _Shared:
    """A check that callers of one moment share: requests that wait for a flush are released together. It starts after
    all of them have called, and does not wait for those that started before.
    """

    def __init__(self, check: Callable[[], Awaitable[None]]) -> None:
        self._check = check
        self._next: Lazy[None] | None = None

    async def __call__(self) -> None:
        if self._next is None:
            self._next = Lazy(self._run)
        await self._next.get()

    async def _run(self) -> None:
        try:
            await anyio.lowlevel.checkpoint()  # others that are released at this moment call, too
        finally:
            self._next = None
        await self._check()
