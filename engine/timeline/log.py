"""The commit log: ``.hoodie/.tallymark/log/<n>``, one entry a number, won by put-if-absent.

Owns: who wins a number, and never telling an unclear outcome as a clear one. Does not own: what makes two writes
conflict (``conflict``), nor what follows from an entry.
"""

import secrets
from collections.abc import Callable
from contextlib import suppress

import anyio

from tallymark.backends.contract import Backend
from tallymark.backends.errors import AlreadyExists, NotFound, Unavailable
from tallymark.engine.concurrently import concurrently
from tallymark.engine.errors import CommitUnknown, CorruptObject, RolledBack
from tallymark.engine.settings import CommitSettings
from tallymark.engine.timeline.entry import LogEntry, decode_entry, decode_pointer, encode_entry, encode_pointer
from tallymark.engine.timeline.history import History

LOG_FOLDER = ".hoodie/.tallymark/log"
BODY_FOLDER = ".hoodie/.tallymark/body"

BODY_BYTES = 1 << 20
"""An entry larger than this is put as a body object first: the put that decides stays small and quick."""

READ_AHEAD = 32
"""Entries asked for at once when the log is read: ten thousand entries at 30 ms a request take ten seconds, not 300."""


class CommitLog:
    """One reader's and writer's hold on a table's log; ``history`` is as far as it has read."""

    def __init__(self, backend: Backend, settings: CommitSettings) -> None:
        self._backend = backend
        self._settings = settings
        self._reading = anyio.Lock()
        self.history = History()

    async def refresh(self) -> History:
        """Read to the end: every entry that was won before the call began is in the history on return."""
        async with self._reading:
            window = 1
            while await self._read_window(window):
                window = min(window * 2, READ_AHEAD)
        return self.history

    async def win(self, entry: LogEntry, *, check: Callable[[History], None]) -> int:
        """Make the entry part of the log; returns its position.

        ``check`` is called with the history each time before a number is tried; what it raises ends the attempt,
        which has then certainly not been written.

        Raises:
            RolledBack: the instant was decided by somebody else's entry.
            CommitUnknown: storage fell silent after a put; the entry may be in the log, or may still get there.
            Unavailable: storage fell silent before any put; the entry is not in the log.
        """
        data = await self._small_form(entry)
        tried: int | None = None  # a number whose put was begun and which has not been read since
        with anyio.move_on_after(self._settings.decision_timeout_s):
            while True:
                try:
                    history = await self.refresh()
                    if (decided := self._decided_position(history, entry)) is not None:
                        return decided
                    tried = None if tried is not None and history.head >= tried else tried
                    check(history)
                    tried = history.head + 1
                    await self._backend.put_new(_entry_path(tried), data)
                except AlreadyExists:
                    continue  # taken: the next reading tells by whom
                except Unavailable:
                    # Repeated at the same number with the same bytes, until that number has been read.
                    await anyio.sleep(self._settings.retry_pause_s)
        if tried is not None:
            raise CommitUnknown(
                f"storage gave no answer for {self._settings.decision_timeout_s} s while instant {entry.instant} was "
                "being decided; it may have been committed: ask 'tallymark timeline' once storage answers",
                instant=entry.instant,
            )
        raise Unavailable(
            f"the commit log gave no answer for {self._settings.decision_timeout_s} s; nothing was written"
        )

    def _decided_position(self, history: History, entry: LogEntry) -> int | None:
        decision = history.decision(entry.instant)
        if decision is None:
            return None
        position, decided = decision
        if decided.nonce == entry.nonce:
            return position
        raise RolledBack(
            f"instant {entry.instant} was ended by another writer's {decided.kind} at position {position}: it had been "
            "taken for dead; write again"
        )

    async def _read_window(self, size: int) -> bool:
        """Read up to ``size`` entries beyond the head; False once the end is reached."""
        first = self.history.head + 1
        found: dict[int, LogEntry] = {}

        async def read(number: int) -> None:
            with suppress(NotFound):
                found[number] = await read_entry(self._backend, number)

        await concurrently(read, range(first, first + size), limit=size)
        for number in range(first, first + size):
            if number not in found:
                return False
            self.history.apply(found[number])
        return True

    async def _small_form(self, entry: LogEntry) -> bytes:
        data = encode_entry(entry)
        if len(data) <= BODY_BYTES:
            return data
        body = f"{BODY_FOLDER}/{entry.nonce}"
        await self._backend.put(body, data)
        return encode_pointer(entry.nonce, body)


async def read_entry(backend: Backend, number: int) -> LogEntry:
    """The entry at a number, with its body. Raises NotFound beyond the end."""
    path = _entry_path(number)
    data = await backend.get(path)
    body = decode_pointer(data, source=path)
    if body is None:
        return decode_entry(data, source=path)
    try:
        return decode_entry(await backend.get(body), source=body)
    except NotFound as error:
        raise CorruptObject(f"{path} refers to {body}, which is gone; restore it from a copy") from error


def new_nonce() -> str:
    return secrets.token_hex(16)


def _entry_path(number: int) -> str:
    return f"{LOG_FOLDER}/{number:020d}"
