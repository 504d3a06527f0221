"""The commit log: ``.hoodie/.tallymark/log/<n>``, one entry per number, won by put-if-absent.

Owns: which writer wins a number, and never reporting an unclear outcome as a clear one. Does not own: which writes
conflict (``conflict``), nor what follows from an entry.
"""

import math
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Protocol

import anyio

from tallymark.backends.concurrently import concurrently
from tallymark.backends.contract import Backend
from tallymark.backends.errors import AlreadyExists, BackendError, InvalidPath, NotFound, NotPermitted, Unavailable
from tallymark.backends.shown import shown
from tallymark.engine.errors import (
    CommitUnknown,
    CorruptObject,
    RolledBack,
    TableReplaced,
    TallymarkError,
    UnsupportedTable,
)
from tallymark.engine.settings import CommitSettings
from tallymark.engine.timeline.entry import LogEntry, decode_entry, decode_pointer, encode_entry, encode_pointer
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.history_base import Decided, HistoryBase
from tallymark.engine.timeline.instant import FLOOR
from tallymark.engine.timeline.log_hash import next_hash
from tallymark.engine.timeline.properties import PROPERTIES, TableProperties

_COMPLETED = re.compile(r"\.hoodie/\d{17}\.(commit|replacecommit)")

LOG_FOLDER = ".hoodie/.tallymark/log"
BODY_FOLDER = ".hoodie/.tallymark/body"

BODY_BYTES = 1 << 20
"""A larger entry is put as a body object first, so that the deciding put remains small and quick."""

READ_AHEAD = 32
"""Entries requested at once when the log is read: ten thousand entries at 30 ms per request take ten seconds,
not 300.
"""

PROBE_AHEAD = 2
"""Entries requested after that of a checkpoint: one more than needed to see the end, so that a gap is noticed."""


class LogStart(Protocol):
    """The source of a base from which a log may be read."""

    async def newest(self) -> HistoryBase | None:
        """Return the base of the newest readable checkpoint; None where there is none."""
        ...

    def refuse(self, reason: str) -> None:
        """Refuse the base: it is not of this log, and nothing else of it may be used."""
        ...


class CommitLog:
    """One process's access to a table's log; ``history`` is the part that it has read."""

    def __init__(self, backend: Backend, settings: CommitSettings, *, start: LogStart | None = None) -> None:
        """If ``start`` has a checkpoint, the log is read from there on, without a listing."""
        self._backend = backend
        self._settings = settings
        self._start = start
        self._reading = anyio.Lock()
        self._is_identified = False
        self._is_started = False
        self._is_replaced = False
        self._attempts: dict[str, _Attempt] = {}
        """Unclear attempts by nonce: when one is repeated, its entry may already be in the log."""
        self.history = History()

    def identify(self, table: str) -> None:
        """Set the id of the table, by which entries of another table's writers are void. Without this call the first
        reading reads the table's properties.
        """
        if table != self.history.table:  # what was read before another writer has created the table, is read again
            self.history = History(table)
            self._is_started = False
        self._is_identified = True

    async def refresh(self) -> History:
        """Read to the end: every entry that was won before the call is in the history on return.

        A missing entry is noticed when the reading reaches it. Without a checkpoint, the first reading lists the log,
        so each missing entry is noticed. From a checkpoint, at least its own entry and two further numbers are read: an
        entry missing before it is noticed when a caller has to ``reach`` it; one missing after it, if a later one is
        among those read.

        Raises:
            CorruptObject: an entry is unreadable or missing.
            TableReplaced: an earlier ``win`` has found the log to be another one.
        """
        if self._is_replaced:
            raise self._replaced()
        async with self._reading:
            window = 1 if self._is_started else await self._open()
            while window and await self._read_window(window):
                window = min(window * 2, READ_AHEAD)
        return self.history

    async def reach(self, position: int) -> History:
        """Make the entries after a position available, in addition to those after the history's base.

        Raises:
            CorruptObject: an entry is unreadable or missing, or they are not those of the base.
        """
        while position < self.history.base:
            async with self._reading:
                base = self.history.base
                numbers = range(position + 1, base + 1)
                found = await read_entries(self._backend, numbers)
                if missing := next((number for number in numbers if number not in found), None):
                    raise _gone(missing)
                if self.history.base == base:  # else more has been forgotten while these were read
                    self.history.take_back([found[number] for number in numbers])
        return self.history

    async def reach_replaced(self, positions: range) -> History:
        """Make the entries at these positions that have replaced files available. Raises as ``reach``."""
        replacing = self.history.replacing(positions)
        return await self.reach(replacing[0] - 1) if replacing else self.history

    async def times(self) -> tuple[float, ...]:
        """Return when each entry up to the head was put, by the store's clock, from the first on, in ascending order.

        An entry that the listing does not show yet counts as put in the future.
        """
        put = {_number(entry.path): entry.modified async for entry in self._backend.list(LOG_FOLDER)}
        head = range(1, self.history.head + 1)
        return tuple(accumulate((put.get(number, math.inf) for number in head), max))

    async def win(self, entry: LogEntry, *, check: Callable[[History], None]) -> int:
        """Make the entry part of the log and return its position.

        ``check`` is called with the history each time before a number is tried. An error that it raises ends the
        attempt: then the entry is certainly not in the log.

        Raises:
            RolledBack: the instant was decided by another writer's entry.
            TableReplaced: the log is another one than was read: there the entry is void.
            CommitUnknown: a put stayed unclear; the entry may be in the log, or may still arrive.
            Unavailable: storage did not answer before any put; the entry is not in the log.
            BackendError: storage refuses; the entry is not in the log.
        """
        attempt = self._attempts.setdefault(entry.nonce, _Attempt(entry))
        try:
            with anyio.move_on_after(self._settings.decision_timeout_s):
                position = await self._fight(attempt, check)
                self._attempts.pop(entry.nonce, None)
                return position
        except TallymarkError as error:
            if attempt.unclear is None:
                self._attempts.pop(entry.nonce, None)  # tried again, it brings its body again
                await self._drop_body(attempt)
            elif isinstance(error, BackendError | CorruptObject):
                raise self._unknown(attempt, f"storage answered {error!r}") from error
            raise
        silence = f"storage gave no answer for {self._settings.decision_timeout_s} s"
        if attempt.unclear is not None:
            raise self._unknown(attempt, silence)
        raise Unavailable(f"{silence}; nothing was written to the commit log")

    def _unknown(self, attempt: "_Attempt", reason: str) -> CommitUnknown:
        instant = attempt.entry.instant
        return CommitUnknown(
            f"{reason} while instant {instant} was being decided; it may have been committed: ask tallymark timeline "
            f"{shown(self._backend.url)} once storage answers",
            instant=instant,
        )

    async def _fight(self, attempt: "_Attempt", check: Callable[[History], None]) -> int:
        """Try one number after the other until the instant is decided. Return its position."""
        while True:
            try:
                history = await self.refresh()
                if (decided := history.decided(attempt.entry.instant)) is not None:
                    position = _won(await self.reach(decided.position - 1), decided, attempt.entry)
                else:
                    attempt.has_read(history.head)
                    check(history)
                    position = await self._take(attempt, history.head + 1)
                await self._check_same_log(attempt.entry, position)
            except AlreadyExists:
                continue  # taken: the next read shows by which writer
            except Unavailable:
                # Repeated at the same number with the same bytes, until that number has been read.
                await anyio.sleep(self._settings.retry_pause_s)
            else:
                return position

    async def _take(self, attempt: "_Attempt", number: int) -> int:
        linked = self.history.linked(attempt.entry)
        data = await self._small_form(attempt, linked)
        before, attempt.unclear = attempt.unclear, number
        try:
            await self._backend.put_new(_entry_path(number), data)
        except (AlreadyExists, NotPermitted, InvalidPath):
            attempt.unclear = before  # this put did nothing; an earlier one at this number may have
            raise
        if self.history.head == number - 1:  # otherwise it has been read since
            self.history.apply(linked)
        return number

    async def _check_same_log(self, entry: LogEntry, position: int) -> None:
        """Check, after the entry was put, that the log in storage is the one that it was linked to.

        The newest entry before it is read again, or the table's id where it has one and there is no such entry: readers
        of another log see another entry there, or none, and treat this one as void.

        Raises:
            TableReplaced: it is another log.
        """
        own, table = self.history.own_before(position), self.history.table
        with suppress(NotFound, UnsupportedTable):
            if own == 0:
                if not table or await self._stored_id() == table:
                    return
            elif self.history.has_at(own, await read_entry(self._backend, own)):
                return
        self._is_replaced = True
        raise self._replaced()

    def _replaced(self) -> TableReplaced:
        return TableReplaced(
            f"{shown(self._backend.url)} was removed, created again or restored from a copy while this process wrote "
            "it: what it has written since does not count; write again"
        )

    async def _stored_id(self) -> str:
        return TableProperties.decode(await self._backend.get(PROPERTIES)).id

    async def _open(self) -> int:
        """Start the first reading. Return how many entries to request next, 0 where the end has been seen."""
        if not self._is_identified:
            with suppress(NotFound):
                self.history = History(await self._stored_id())
        base = None if self._start is None else await self._start.newest()
        found = {} if base is None else await read_entries(self._backend, _first_window(base.position))
        is_ours = base is not None and base.table == self.history.table and _is_of(base, found)
        if base is None or self._start is None or not is_ours:
            if base is not None and self._start is not None:
                self._start.refuse("the log does not hold the entry that it ends with")
                self.history = History(self.history.table)
            await self._read_listed()
            window = 1
        else:
            self.history = History(base)
            window = 2 * PROBE_AHEAD if await self._take_in(found, base.position + 1, PROBE_AHEAD) else 0
        self._is_started = True
        return window

    async def _read_listed(self) -> None:
        """Read the log without a checkpoint, with a listing, so that a missing entry is never treated as the log's end.

        An empty log beside a Hudi timeline with commits is an error: the log was lost, for instance by an incomplete
        copy.
        """
        listed = [entry.path async for entry in self._backend.list(LOG_FOLDER)]
        newest = max(map(_number, listed), default=0)
        while self.history.head < newest:
            if not await self._read_window(min(READ_AHEAD, newest - self.history.head)):
                await self._check_later(sorted(number for number in map(_number, listed) if number > self.history.head))
                break
        if newest == 0 and (projected := await self._projected_instant()) is not None:
            await self._read_window(1)  # another writer may have won the first entry since, and projected it
            if self.history.head == 0:
                raise CorruptObject(
                    f"{LOG_FOLDER} is empty, and {projected} is there; restore .hoodie/.tallymark from a copy"
                )

    async def _projected_instant(self) -> str | None:
        """Return a completed instant of the Hudi timeline other than the floor."""
        found = [entry.path async for entry in self._backend.list(".hoodie")]
        return next((path for path in found if _COMPLETED.fullmatch(path) and FLOOR not in path), None)

    async def _read_window(self, size: int) -> bool:
        """Read up to ``size`` entries beyond the head; False once the end is reached."""
        first = self.history.head + 1
        return await self._take_in(await read_entries(self._backend, range(first, first + size)), first, size)

    async def _take_in(self, found: dict[int, LogEntry], first: int, size: int) -> bool:
        """Apply the entries found at these numbers. Return False if the numbers reach beyond the end.

        An entry is won after the one before it can be read: a number without an entry, below one with an entry, is a
        loss.
        """
        newest = max((number for number, entry in found.items() if entry.table == self.history.table), default=0)
        for number in range(first, first + size):
            if number <= self.history.head:
                continue  # this process has won it since
            if number not in found and number < newest:  # won while the others were asked for
                found |= await read_entries(self._backend, [number])
                if number not in found:
                    raise _gone(number)
            if number not in found:
                return False
            self.history.apply(found[number])
        return True

    async def _check_later(self, numbers: Sequence[int]) -> None:
        """Check that none of the entries beyond the end is this table's: if one is, an entry before it is missing.
        Those of another table are void, and are read as such once the log reaches them.
        """
        for number in numbers:
            entries = await read_entries(self._backend, [number])
            if any(entry.table == self.history.table for entry in entries.values()):
                raise _gone(self.history.head + 1)

    async def _small_form(self, attempt: "_Attempt", linked: LogEntry) -> bytes:
        """Return the bytes to put under a number, after the body is durable of an entry that is too large for them."""
        if not attempt.has_body:
            data = encode_entry(linked)
            if len(data) <= BODY_BYTES:
                return data
            await self._backend.put(_body_path(linked), data)
            attempt.has_body = True
        return encode_pointer(linked, _body_path(linked))

    async def _drop_body(self, attempt: "_Attempt") -> None:
        """Delete the body of an entry that will not be in the log: no reader will request it."""
        if attempt.has_body:
            with suppress(BackendError):
                await self._backend.delete([_body_path(attempt.entry)])


@dataclass(slots=True)
class _Attempt:
    """Progress of an entry on its way into the log."""

    entry: LogEntry
    has_body: bool = False
    """Whether its body is durable, apart from the bytes under its number."""
    unclear: int | None = None
    """A number whose put was started and which has not been read since."""

    def has_read(self, head: int) -> None:
        """Record that the log was read up to here without the instant: an unclear put at such a number has failed."""
        if self.unclear is not None and self.unclear <= head:
            self.unclear = None


def _won(history: History, decided: Decided, entry: LogEntry) -> int:
    """Return the position of the entry if it is the one that decided its instant. Raises RolledBack."""
    if history.entry(decided.position).nonce == entry.nonce:
        return decided.position
    raise RolledBack(
        f"instant {entry.instant} was ended by another writer's {decided.kind} at position {decided.position}: it had "
        "been treated as dead; write again"
    )


def _first_window(position: int) -> range:
    return range(position, position + 1 + PROBE_AHEAD)


def _is_of(base: HistoryBase, found: dict[int, LogEntry]) -> bool:
    """Return whether the entry at the base's position is the one that the base ends with."""
    entry = found.get(base.position)
    return entry is not None and next_hash(base.hash_before, base.position, entry) == base.hash


def _gone(number: int) -> CorruptObject:
    return CorruptObject(f"{_entry_path(number)} is gone, and later entries are there; restore it from a copy")


async def read_entries(backend: Backend, numbers: Iterable[int]) -> dict[int, LogEntry]:
    """Return the entries at these numbers, ``READ_AHEAD`` at once; missing ones are left out."""
    found: dict[int, LogEntry] = {}

    async def read(number: int) -> None:
        with suppress(NotFound):
            found[number] = await read_entry(backend, number)

    await concurrently(read, numbers, limit=READ_AHEAD)
    return found


async def read_entry(backend: Backend, number: int) -> LogEntry:
    """Return the entry at a number, with its body. Raises NotFound beyond the end."""
    path = _entry_path(number)
    data = await backend.get(path)
    pointer = decode_pointer(data, source=path)
    if pointer is None:
        return decode_entry(data, source=path)
    try:
        entry = decode_entry(await backend.get(pointer.body), source=pointer.body)
    except NotFound as error:
        raise CorruptObject(f"{path} refers to {pointer.body}, which is gone; restore it from a copy") from error
    return replace(entry, table=pointer.table, previous=pointer.previous)


def new_nonce() -> str:
    return secrets.token_hex(16)


def _body_path(entry: LogEntry) -> str:
    """Return the path of the entry's body. It contains the instant, by which a clean knows whether the body can still
    be requested.
    """
    return f"{BODY_FOLDER}/{entry.instant}/{entry.nonce}"


def _number(path: str) -> int:
    return int(path.rpartition("/")[2])


def _entry_path(number: int) -> str:
    return f"{LOG_FOLDER}/{number:020d}"
