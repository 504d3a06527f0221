"""Lease of a reader, ``.hoodie/.tallymark/read/<nonce>``, which keeps the files of its snapshot, and its heartbeats.

Owns: the content of a lease, and its renewal. Does not own: which position a reader gets
(``inspection.leased_snapshot``), nor how a clean respects it (``maintenance.readers``).
"""

from dataclasses import asdict, dataclass, fields

import anyio
import msgpack

from tallymark.backends.contract import Backend
from tallymark.backends.events import EventLog
from tallymark.engine.clock import asleep_s
from tallymark.engine.errors import CorruptObject
from tallymark.engine.packed import unpack
from tallymark.engine.settings import LeaseSettings
from tallymark.engine.timeline.lease import keep_beating
from tallymark.engine.timeline.log import new_nonce
from tallymark.engine.timeline.writer_identity import WriterIdentity

READ_FOLDER = ".hoodie/.tallymark/read"

FORMAT = 1
"""Format of a lease's content."""

_events = EventLog(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A reader, and the position from which on it reads: the content of a lease. The lease's age is that of the
    object.
    """

    nonce: str
    position: int
    """No clean may have a greater horizon: files that were replaced after this position of the log remain."""
    process: WriterIdentity
    expiry_s: float
    """Duration of the lease: with an older heartbeat it protects no reader."""

    @property
    def path(self) -> str:
        return f"{READ_FOLDER}/{self.nonce}"

    def is_dead(self, age_s: float, *, seen_from: WriterIdentity) -> bool:
        """Return whether its process has certainly ended, or its last heartbeat is older than its lease."""
        return self.process.is_gone(seen_from=seen_from) or age_s > self.expiry_s

    def encode(self) -> bytes:
        packed: bytes = msgpack.packb({"format": FORMAT, **asdict(self)})
        return packed

    @classmethod
    def decode(cls, data: bytes, *, source: str) -> "Reader":
        """Return what ``encode`` wrote, in this release or a later one of the same format. Raises CorruptObject."""
        try:
            found = unpack(data)
            if found["format"] != FORMAT:
                raise CorruptObject(f"{source} is not a lease of format {FORMAT}: another release reads here")
            known = {field.name: found[field.name] for field in fields(cls)}
            known["process"] = WriterIdentity.of_fields(known["process"])
            reader = cls(**known)
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptObject(f"{source} is not a reader's lease: {error!r}") from error
        if not reader._is_sound():
            raise CorruptObject(f"{source} is not a reader's lease: a field holds what no reader puts there")
        return reader

    def _is_sound(self) -> bool:
        return (
            type(self.nonce) is str
            and type(self.position) is int
            and self.position >= 0
            and type(self.expiry_s) in (int, float)
            and self.expiry_s >= 0
        )


class ReaderLease:
    """One lease, kept by the process that reads. Its name is used once."""

    def __init__(self, backend: Backend, settings: LeaseSettings) -> None:
        self._backend = backend
        self._settings = settings
        self._nonce = new_nonce()
        self._position = 0
        self._last_heartbeat = float("-inf")
        self._beating = anyio.Lock()
        self._is_over = False

    async def begin(self, position: int) -> None:
        """Take the lease: every clean that lists leases from now on respects it."""
        self._position = position
        await self.renew()

    def move_to(self, position: int) -> None:
        """Move to a later position. The next heartbeat records it, and until then the lease retains more than it has
        to: a second put at once is more than GCS accepts for one object.
        """
        assert position >= self._position, "a lease never moves back: what lies behind it may be gone"
        self._position = position

    async def renew(self) -> None:
        """Renew the lease. Does nothing once it was given up."""
        async with self._beating:
            if self._is_over:
                return
            started = anyio.current_time() + asleep_s()
            await self._backend.put(self._path, self._said())
            late_s, self._last_heartbeat = started - self._last_heartbeat, started
        if self._settings.expiry_s < late_s < float("inf"):
            _events.warning("lease.lapsed", position=self._position, late_s=late_s)

    async def keep(self) -> None:
        """Put a heartbeat at every interval until cancelled. Missed ones are logged. A scan whose files are deleted
        fails; it never leaves rows out.
        """
        await keep_beating(
            self.renew,
            self._settings,
            first_s=self._settings.heartbeat_interval_s,
            missed=lambda reason: _events.warning("lease.unrenewed", position=self._position, reason=reason),
        )

    async def give_up(self) -> None:
        """Delete the lease; no later heartbeat puts it again."""
        self._is_over = True
        async with self._beating:
            await self._backend.delete([self._path])

    @property
    def _path(self) -> str:
        return f"{READ_FOLDER}/{self._nonce}"

    def _said(self) -> bytes:
        return Reader(
            nonce=self._nonce,
            position=self._position,
            process=WriterIdentity.here(),
            expiry_s=self._settings.expiry_s,
        ).encode()
