"""Lease of a writer, which protects it from rollback, and the heartbeats that renew it.

Time only ever decides whether a process starts a rollback, never whether something is committed: the log decides that.
"""

import math
from collections.abc import Awaitable, Callable

import anyio

from tallymark.backends.contract import Backend
from tallymark.backends.errors import BackendError
from tallymark.backends.events import EventLog
from tallymark.engine.clock import asleep_s
from tallymark.engine.errors import RolledBack
from tallymark.engine.settings import LeaseSettings
from tallymark.engine.timeline.history_base import Decided
from tallymark.engine.timeline.log import CommitLog
from tallymark.engine.timeline.reservation import HEARTBEAT_FOLDER

_events = EventLog(__name__)


class Lease:
    """The lease of one instant, kept by the process that writes it."""

    def __init__(
        self,
        backend: Backend,
        instant: str,
        log: CommitLog,
        settings: LeaseSettings,
        *,
        asleep_s: Callable[[], float] = asleep_s,
    ) -> None:
        self._backend = backend
        self._instant = instant
        self._log = log
        self._settings = settings
        self._asleep_s = asleep_s
        self._last_heartbeat = float("-inf")
        self._beating = anyio.Lock()
        self._is_over = False

    @property
    def path(self) -> str:
        return heartbeat_path(self._instant)

    def begin(self) -> None:
        """Start the lease, right before the put of the instant's reservation: that is its first heartbeat."""
        self._last_heartbeat = self._now()

    @property
    def is_fresh(self) -> bool:
        """Whether no process can have started to roll this instant back, nor to archive what it needs of the log."""
        return self._now() - self._last_heartbeat < self._settings.expiry_s / 2

    async def renew(self) -> None:
        """Renew the lease, and check whether it was lost. Does nothing once it was given up.

        Where the instant's entry is archived, it may be the commit that is being won: that finds out. Acks are refused.

        Raises:
            RolledBack: another writer has rolled the instant back.
        """
        async with self._beating:
            if self._is_over:
                return
            started = self._now()
            await self._backend.put(self.path, b"")
            decided = (await self._log.refresh()).decided(self._instant)
            is_archived = decided is not None and decided.kind == "archived"
            if not is_archived:
                self._refuse_if_rolled_back(decided)
            self._last_heartbeat = -math.inf if is_archived else started

    async def keep(self) -> None:
        """Put a heartbeat at every interval until cancelled. Missed ones are logged: the acks themselves check the
        lease.

        A heartbeat in flight is ended before the return: one that arrived after ``give_up`` would remain.
        """
        await keep_beating(
            self.renew,
            self._settings,
            first_s=self._due_s(),
            missed=lambda reason: _events.warning("beat.missed", instant=self._instant, reason=reason),
        )

    async def give_up(self) -> None:
        """End the heartbeats: on return none is in flight, so what the writer deletes from now on remains deleted."""
        self._is_over = True
        async with self._beating:
            pass

    async def check_open(self) -> None:
        """Check that no process can have started to roll this instant back, or that the log shows that none did.

        Raises:
            RolledBack: another writer did.
        """
        if not self.is_fresh:
            self._refuse_if_rolled_back((await self._log.refresh(verify=True)).decided(self._instant))

    async def check_log(self) -> None:
        """Check that no writer has rolled this instant back so far. Raises RolledBack."""
        self._refuse_if_rolled_back((await self._log.refresh()).decided(self._instant))

    def _due_s(self) -> float:
        """Return the seconds until the heartbeat after the first one, which may be long ago: the instant was reserved
        in between.
        """
        since = self._now() - self._last_heartbeat
        return (
            max(0.0, self._settings.heartbeat_interval_s - since)
            if math.isfinite(since)
            else self._settings.heartbeat_interval_s
        )

    def _now(self) -> float:
        """Return seconds of a clock that includes sleep: a writer that wakes does not treat its heartbeat as recent."""
        return anyio.current_time() + self._asleep_s()

    def _refuse_if_rolled_back(self, decided: Decided | None) -> None:
        if decided is not None and decided.kind in ("rollback", "archived"):
            where = f"at position {decided.position}" if decided.position else "at a position that is archived"
            raise RolledBack(
                f"instant {self._instant} was rolled back {where}, by another writer that took this one for dead, or "
                "by 'tallymark rollback --instant'; write again"
            )


async def keep_beating(
    renew: Callable[[], Awaitable[None]],
    settings: LeaseSettings,
    *,
    first_s: float,
    missed: Callable[[Exception], None],
) -> None:
    """Renew after ``first_s``, then at every interval, until cancelled; a heartbeat in flight is ended before the
    return.
    """
    await anyio.sleep(first_s)
    while True:
        try:
            with anyio.fail_after(settings.expiry_s / 4, shield=True):  # else a silent one would be the last
                await renew()
        except (BackendError, TimeoutError) as error:
            missed(error)
        await anyio.sleep(settings.heartbeat_interval_s)


def heartbeat_path(instant: str) -> str:
    return f"{HEARTBEAT_FOLDER}/{instant}"
