"""The commit log: ``.hoodie/.tallymark/log/<n>``, one entry per number, won by put-if-absent.

Owns: which writer wins a number, and never reporting an unclear outcome as a clear one. Does not own: which writes
conflict (``conflict``), nor what follows from an entry.
"""

import math
import secrets
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Protocol

import anyio

from tallymark.backends.concurrently import at_once, concurrently
from tallymark.backends.contract import Backend
from tallymark.backends.errors import AlreadyExists, BackendError, InvalidPath, NotFound, NotPermitted, Unavailable
from tallymark.backends.shown import shown
from tallymark.engine.clock import Clock, SystemClock
from tallymark.engine.errors import (
    CommitUnknown,
    CorruptObject,
    InvalidRequest,
    LostEntries,
    RolledBack,
    TableReplaced,
    UnsupportedTable,
)
from tallymark.engine.settings import CommitSettings
from tallymark.engine.timeline.contention import Contention
from tallymark.engine.timeline.entry import (
    LogEntry,
    check_features,
    decode_entry,
    decode_pointer,
    encode_entry,
    encode_pointer,
)
from tallymark.engine.timeline.group import Attempt, Proposal, entry_of, group_of
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.history_base import Decided, HistoryBase, no_history
from tallymark.engine.timeline.instant import FLOOR
from tallymark.engine.timeline.listing import Listing, read_listing
from tallymark.engine.timeline.log_hash import next_hash
from tallymark.engine.timeline.projection import instant_of_projected, projected_table
from tallymark.engine.timeline.properties import PROPERTIES, TableProperties

LOG_FOLDER = ".hoodie/.tallymark/log"
BODY_FOLDER = ".hoodie/.tallymark/body"

LATEST_CHECKPOINT = ".hoodie/.tallymark/checkpoint/latest"

BODY_BYTES = 1 << 20
"""A larger entry is put as a body object first, so that the deciding put remains small and quick."""

READ_AHEAD = 32
"""Entries requested at once when the log is read: ten thousand entries at 30 ms per request take ten seconds,
not 300.
"""

VERIFY_AFTER_S = 60.0
"""Time after which a reading that finds nothing new checks that the log continues what was read: a process that was
stopped may have missed that the log was archived, restored or created again. It costs one get a minute at most.
"""


class LogStart(Protocol):
    """The source of a base from which a log may be read."""

    async def newest(self, listed: Sequence[str], *, table: str = "") -> HistoryBase | None:
        """Return the base of the newest readable checkpoint; None where there is none.

        ``listed`` are the names of all manifests that a listing has shown, for the case that the pointer is unreadable
        or late; those of other tables than ``table``, if that is known, are passed over.
        """
        ...

    async def base_of(self, name: str) -> HistoryBase | None:
        """Return the base that a manifest contains, which is not used; None where it is missing or unreadable."""
        ...

    def is_late(self, listed: Sequence[str]) -> bool:
        """Return whether these names of all manifests show that the pointer, as it was read last, is a put that arrived
        once more.
        """
        ...

    def refuse(self, reason: str) -> None:
        """Refuse the base: it is not of this log, and nothing else of it may be used."""
        ...


async def furthest_archived(backend: Backend, start: LogStart, table: str) -> HistoryBase | None:
    """Return the base of the table's checkpoint, of those that a listing shows, by which its log is archived furthest;
    None where none is.

    It need not be the one with the greatest name: that may be of a writer that has died before it archived anything.
    """
    bases = [await start.base_of(name) for name in (await read_listing(backend)).manifests]
    own = (base for base in bases if base is not None and base.table == table and base.start > 0)
    return max(own, key=lambda base: base.start, default=None)


async def is_archived(backend: Backend, start: LogStart, table: str) -> bool:
    """Return whether entries of the table's log are archived: a checkpoint of it shows it."""
    return await furthest_archived(backend, start, table) is not None


class CommitLog:
    """One process's access to a table's log; ``history`` is the part that it has read."""

    def __init__(
        self,
        backend: Backend,
        settings: CommitSettings,
        *,
        start: LogStart | None = None,
        clock: Clock | None = None,
        linger: float = 0.0,
    ) -> None:
        """If ``start`` has a checkpoint, the log is read from there on. ``linger`` is the time, in times of a put, in
        which callers whose entries were decided may bring their next ones before an entry is put.
        """
        self._backend = backend
        self._clock = clock or SystemClock()
        self._settings = settings
        self._start = start
        self._reading = anyio.Lock()
        self._readings = 0
        """Readings that were started."""
        self._has_read = 0
        """The last reading that has succeeded, by its number."""
        self._is_identified = False
        self._is_started = False
        self.is_replaced = False
        """Whether the log in storage was found to be another one than this process has read."""
        self._verified_at = -math.inf
        self.listed_open: frozenset[str] = frozenset()
        """Open instants that the last listing has shown, which were not recovered since."""
        self.listed_at = -math.inf
        """When that was."""
        self._manifests: list[str] = []
        """Names of the checkpoints' manifests that the last listing has shown."""
        self._attempts: dict[str, Attempt] = {}
        """Unclear attempts by nonce: when one is repeated, its entry may already be in the log."""
        self._waiting: dict[str, Attempt] = {}
        """Attempts whose callers wait, in the order of their arrival."""
        self._deciding = anyio.Lock()
        self._is_behind = False
        """Whether a number was found to be taken that was not read yet."""
        self._linger = linger
        self._gathers_until = -math.inf
        """Until when the next entry waits for callers."""
        self._contention = Contention()
        self._newest_put = 0, b""
        """The last entry that this process has put, by its number."""
        self.history = History()

    def identify(self, table: str, writer_features: Iterable[str] = ()) -> None:
        """Set the id of the table, by which entries of another table's writers are void, and the features that its
        writers need. Without this call the first reading reads the table's properties.
        """
        if table != self.history.table:  # what was read before another writer has created the table, is read again
            self._is_started = False
        if not self._is_started:
            self.history = History(no_history(table, frozenset(writer_features)))
        self._is_identified = True

    async def refresh(self, *, verify: bool = False) -> History:
        """Read to the end: every entry that was won before the call is in the history on return.

        The first reading lists the bookkeeping, and compares what it shows with the log: a missing entry is noticed.
        Later ones get the numbers after the head; with ``verify``, or some time after the last check, they also check
        that the log in storage continues the history, which is read again where it was archived since.

        Raises:
            CorruptObject: an entry is unreadable or missing.
            LostEntries: so are the newest ones, and a checkpoint or the Hudi timeline shows that they existed.
            TableReplaced: the log is another one than was read.
            UnsupportedTable: the table needs a newer release.
        """
        if self.is_replaced:
            raise self._replaced()
        needed = self._readings + 1
        async with self._reading:
            if self._has_read < needed or verify:  # otherwise one that started after this call has been enough
                self._readings += 1
                number = self._readings
                if not self._is_started:
                    await self._open()
                else:
                    await self._read_on(verify)
                self._has_read = number
        return self.history

    @property
    def is_open(self) -> bool:
        """Whether the log was read, so that ``history`` is as of then, or as of a later entry."""
        return self._is_started and not self.is_replaced

    async def _read_on(self, verify: bool) -> None:
        """Read from the head to the end, and check it then: an entry that is missing may have been archived since the
        head was read. Entries are deleted in their order, so the one before it shows afterwards that it was not.
        """
        read, window = self.history, min(self._contention.window, READ_AHEAD)
        head = read.head
        try:
            while await self._read_window(window):
                window = min(window * 2, READ_AHEAD)
            self._contention.has_read(self.history.head - head)
        except CorruptObject:
            await self._verify()
            if self.history is read:
                raise
        else:
            if verify or anyio.current_time() - self._verified_at >= VERIFY_AFTER_S:
                await self._verify()

    async def reach(self, position: int) -> History:
        """Make the entries after a position available, in addition to those after the history's base.

        Raises:
            CorruptObject: an entry is unreadable or missing, or they are not those of the base.
            InvalidRequest: they are archived.
        """
        while position < self.history.base:
            self._check_not_archived(position)
            async with self._reading:
                base = self.history.base
                numbers = range(position + 1, base + 1)
                try:
                    found = await self._read_all(numbers)
                except CorruptObject:
                    if await self._is_archived_further():
                        continue
                    raise
                if self.history.base == base:  # else more has been forgotten while these were read
                    self.history.take_back(found)
        return self.history

    async def _read_all(self, numbers: Sequence[int]) -> list[LogEntry]:
        found = await read_entries(self._backend, numbers)
        if missing := next((number for number in numbers if number not in found), None):
            raise _gone(missing)
        return [found[number] for number in numbers]

    async def _is_archived_further(self) -> bool:
        """Return whether the log is archived further than is known, and record it."""
        known, furthest = self.history.start, await self._furthest_archived()
        if furthest is not None:
            self.history.archive(min(furthest.start, self.history.head), furthest.floor)
        return self.history.start > known

    async def entries(self, *, after: int | None = None, limit: int | None = None) -> list[tuple[int, LogEntry]]:
        """Return the decisions that count now, with their positions, in order: of the positions after one, by default
        of all that are not archived, the first ``limit``; without ``after`` the newest. Those of a group are together.
        The history does not keep them.

        Raises as ``refresh``, and InvalidRequest where entries after that position are archived.
        """
        positions = await self.positions(after=after, limit=limit)
        history = self.history
        known = {position: history.entry(position).members for position in positions if position > history.base}
        earlier = [position for position in positions if position not in known]
        try:
            read = await self._read_all(earlier)
            known.update((position, entry.members) for position, entry in zip(earlier, read, strict=True))
        except CorruptObject:
            if await self._is_archived_further():
                return await self.entries(after=after, limit=limit)
            raise
        return [
            (position, member)
            for position in positions
            for member in known[position]
            if (decided := history.decided(member.instant)) is not None and decided.position == position
        ]

    async def positions(self, *, after: int | None = None, limit: int | None = None) -> list[int]:
        """Return the positions of the entries that ``entries`` would return. Raises as it does."""
        history = await self.refresh()
        first = history.start if after is None else after
        self._check_not_archived(first)
        positions = [position for position in history.positions if position > first]
        if limit is None:
            return positions
        return positions[:limit] if after is not None else positions[-limit:]

    async def has(self, position: int) -> bool:
        """Return whether storage has the entry at a position."""
        try:
            await self._backend.get_range(entry_path(position), 0, 1)
        except NotFound:
            return False
        return True

    def _check_not_archived(self, position: int) -> None:
        if position < self.history.start:
            raise InvalidRequest(
                f"position {position} of {shown(self._backend.url)} is archived: its log is kept from position "
                f"{self.history.start} on (CommitSettings.log_entry_count)"
            )

    async def reach_replaced(self, positions: range) -> History:
        """Make the entries at these positions that have replaced files available. Raises as ``reach``."""
        replacing = self.history.replacing(positions)
        return await self.reach(replacing[0] - 1) if replacing else self.history

    async def times(self) -> "EntryTimes":
        """Return when each entry up to the head was put, by the store's clock.

        An entry that the listing does not show yet counts as put in the future.
        """
        put = {_number(entry.path): entry.modified async for entry in self._backend.list(LOG_FOLDER)}
        head = self.history.head
        start = max((number for number in put if number <= head), default=head)
        while start in put:  # a put that arrives late may have repeated an entry before, which was archived
            start -= 1
        kept = (put.get(number, math.inf) for number in range(start + 1, head + 1))
        return EntryTimes(start, tuple(accumulate(kept, max)))

    async def win(
        self,
        entry: LogEntry,
        *,
        check: Callable[[History], None],
        is_protected: Callable[[], bool] = lambda: False,
        joins: bool = False,
        is_asked: bool = False,
    ) -> int:
        """Make the entry part of the log and return its position.

        ``check`` is called with the history each time before a number is tried. An error that it raises ends the
        attempt: then the entry is certainly not in the log.

        ``is_protected`` returns whether a reservation has kept other writers from archiving what this process has read,
        until now. ``joins``: entries of other callers that wait may be decided by the same object, as members of a
        group; the check depends on no other entry than those that ``check_conflicts`` compares. ``is_asked``: another
        process was asked to put the entry, and may still do so.

        Raises:
            RolledBack: the instant was decided by another writer's entry.
            TableReplaced: the log is another one than was read: there the entry is void.
            CommitUnknown: a put stayed unclear; the entry may be in the log, or may still arrive.
            Unavailable: storage did not answer before any put; the entry is not in the log.
            BackendError: storage refuses; the entry is not in the log.
        """
        [outcome] = await self.win_all([Proposal(entry, check, is_protected, joins=joins, is_asked=is_asked)])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def win_all(self, proposals: Sequence[Proposal]) -> list[int | Exception]:
        """Do the same for several entries of different instants, and return the position, or the error, of each."""
        attempts = [self._begun(proposal) for proposal in proposals]
        try:
            with anyio.move_on_after(self._settings.decision_timeout_s):
                async with self._deciding:
                    if any(attempt.outcome is None for attempt in attempts):
                        await anyio.sleep_until(self._gathers_until)
                    for attempt in attempts:
                        while attempt.outcome is None:
                            await self._try_next(attempt)
        finally:
            for attempt in attempts:
                self._waiting.pop(attempt.entry.nonce, None)  # another caller may have repeated the entry
        return [await self._ended(attempt) for attempt in attempts]

    def _begun(self, proposal: Proposal) -> Attempt:
        entry = proposal.entry
        attempt = self._attempts.setdefault(entry.nonce, Attempt(entry, self._time_ms()))
        attempt.start(proposal)
        self._waiting[entry.nonce] = attempt
        return attempt

    async def _ended(self, attempt: Attempt) -> int | Exception:
        """Return the outcome of an attempt that is not tried any more."""
        outcome, nonce = attempt.outcome, attempt.entry.nonce
        if outcome is None:
            silence = f"storage gave no answer for {self._settings.decision_timeout_s} s"
            if attempt.unclear is not None:
                return self._unknown(attempt, silence)
            return Unavailable(f"{silence}; nothing was written to the commit log")
        if isinstance(outcome, int):
            self._attempts.pop(nonce, None)
        elif attempt.unclear is None:
            self._attempts.pop(nonce, None)  # tried again, it brings its body again
            await self._drop_body(attempt)
        elif isinstance(outcome, BackendError | CorruptObject):
            unknown = self._unknown(attempt, f"storage answered {outcome!r}")
            unknown.__cause__ = outcome
            return unknown
        return outcome

    def _time_ms(self) -> int:
        return int(self._clock.now().timestamp() * 1000)

    def _unknown(self, attempt: Attempt, reason: str) -> CommitUnknown:
        instant = attempt.entry.instant
        return CommitUnknown(
            f"{reason} while instant {instant} was being decided; it may have been committed: ask tallymark timeline "
            f"{shown(self._backend.url)} once storage answers",
            instant=instant,
        )

    async def _try_next(self, attempt: Attempt) -> None:
        """Try the number after the head, for this attempt and those that join it. An attempt that is decided, or has
        failed, has its outcome on return.
        """
        try:
            history = self.history
            if self._is_behind or attempt.unclear is not None or not self.is_open:
                history = await self.refresh()
                self._is_behind = False
            if (decided := history.decided(attempt.entry.instant)) is not None:
                position = await self._won(decided, attempt.entry)
                attempt.outcome = await self._checked_position(attempt.entry, position)
                return
            attempt.has_read(history.head)
            self.check_writable()
            if attempt.entry.kind == "commit" and not attempt.entry.is_plain_append:
                await self.reach(attempt.entry.base)
            attempt.check(history)
        except Unavailable:
            await anyio.sleep(self._settings.retry_pause_s)
        except Exception as error:
            attempt.outcome = error
        else:
            group = group_of(attempt, self._waiting.values(), history)
            # others depend on it: a cancelled caller waits for them, at most for as long as its own limit
            with anyio.CancelScope(
                shield=len(group) > 1, deadline=anyio.current_time() + self._settings.decision_timeout_s
            ):
                await self._take(group, history.head + 1)

    async def _won(self, decided: Decided, entry: LogEntry) -> int:
        """Return the position of the entry if it is the one that decided its instant.

        Raises:
            RolledBack: it is another writer's.
            CommitUnknown: it is archived.
        """
        try:
            self._check_not_archived(decided.position - 1)  # at position 0 where no more is known
            history = await self.reach(decided.position - 1)
        except InvalidRequest as error:
            raise CommitUnknown(
                f"instant {entry.instant} is over, and its log entry is archived: it was committed or rolled back "
                "while this process was stopped; 'tallymark files' shows whether its files are part of the table",
                instant=entry.instant,
            ) from error
        if history.entry_of(decided).nonce == entry.nonce:
            return decided.position
        raise RolledBack(
            f"instant {entry.instant} was ended by another writer's {decided.kind} at position {decided.position}: it "
            "had been treated as dead; write again"
        )

    async def _take(self, group: Sequence[Attempt], number: int) -> None:
        """Put the entry of these attempts at a number. Those that are decided, or have failed, get their outcome."""
        linked = self.history.linked(entry_of(group))
        before = [attempt.unclear for attempt in group]
        started = anyio.current_time()
        try:
            continues = await self._put_beside_check(group, linked, number)
        except Unavailable:  # repeated at the same number, until that number has been read
            self._is_behind = True
            await anyio.sleep(self._settings.retry_pause_s)
        except (AlreadyExists, NotPermitted, InvalidPath) as error:
            self._is_behind = True
            for attempt, unclear in zip(group, before, strict=True):
                attempt.unclear = unclear  # this put did nothing; an earlier one at this number may have
            await self._refused(group, error, put_s=anyio.current_time() - started)
        except Exception as error:
            for attempt in group:
                attempt.outcome = error
        else:
            self._contention.won()
            if len(group) > 1:
                now = anyio.current_time()
                self._gathers_until = now + self._linger * (now - started)
            if self.history.head == number - 1:  # otherwise it has been read since
                self.history.apply(linked)
            for attempt in group:
                await self._settle_won(attempt, number, continues=continues)

    async def _refused(self, group: Sequence[Attempt], error: BackendError, *, put_s: float) -> None:
        """Let the attempts fail, or wait for their turn: which entry has taken the number is read before the next."""
        if isinstance(error, AlreadyExists):
            await anyio.sleep(self._contention.lost(group[0].entry.instant, put_s))
        else:
            for attempt in group:
                attempt.outcome = error

    async def _put_beside_check(self, group: Sequence[Attempt], linked: LogEntry, number: int) -> bool | None:
        """Put an entry, and read the one before at the same time. Return what ``_continues`` does."""
        continues: bool | None = None

        async def put() -> None:
            data = await self._small_form(group[0], linked) if len(group) == 1 else encode_entry(linked)
            for attempt in group:
                attempt.unclear = number
            await self._backend.put_new(entry_path(number), data)
            self._newest_put = number, data

        async def look() -> None:
            nonlocal continues
            continues = await self._continues(number)

        await at_once(put, look)
        return continues

    async def _settle_won(self, attempt: Attempt, number: int, *, continues: bool | None) -> None:
        """Set the outcome of an attempt whose entry was put at a number.

        The log is the one that was read if ``continues``, which was read during the put, is true: a table that was
        replaced since has lost this entry like all others. But where the instant is not protected, the entry before may
        have been archived since, and the position be free for that reason: it is read again.
        """
        if continues and attempt.is_protected():
            attempt.outcome, attempt.unclear = number, None
            return
        try:
            attempt.outcome = await self._checked_position(attempt.entry, number)
            attempt.unclear = None
        except Unavailable:
            self._is_behind = True  # asked again when the log was read
        except Exception as error:
            attempt.outcome = error

    def check_writable(self) -> None:
        """Check that this release knows every feature that writers of the table need. Raises UnsupportedTable."""
        check_features("writer", self.history.writer_features, source=shown(self._backend.url))

    async def _checked_position(self, entry: LogEntry, position: int) -> int:
        """Check, after the entry was put, that the log in storage is the one that it was linked to. Return where it is.

        The newest entry before it is read again: readers of another log see another entry there, or none, and treat
        this one as void. Where none is there since the log was archived, a reading from its checkpoint on shows whether
        this one is in it: entries are deleted in their order, so the position may have been free because an archived
        entry of it had been deleted.

        Raises:
            TableReplaced: it is another log.
            RolledBack: the instant was decided by another writer's entry.
            CommitUnknown: the entry of the instant is archived, too.
        """
        continues = await self._continues(position)
        if continues is None:
            furthest = await self._furthest_archived()
            if furthest is not None and furthest.start >= self.history.own_before(position):
                await self._open_again()
                if (decided := self.history.decided(entry.instant)) is not None:
                    return await self._won(decided, entry)
        if continues is not True:
            self.is_replaced = True
            raise self._replaced()
        return position

    async def _continues(self, position: int) -> bool | None:
        """Return whether storage has the newest entry before a position that this process has read; None where no entry
        is there.
        """
        own = self.history.own_before(position)
        number, data = self._newest_put
        try:
            if own == 0:
                return await self._begins_here()
            if own == number and await self._backend.get(entry_path(own)) == data:  # a large group takes long to decode
                return True
            return self.history.has_at(own, await read_entry(self._backend, own))
        except UnsupportedTable:
            return False
        except NotFound:
            return None

    async def _begins_here(self) -> bool | None:
        """Return whether the log in storage is that of this table, of which this process has read no entry; None where
        it is archived from its first entry on.
        """
        table = self.history.table
        if not table:
            return True
        is_same, is_archived = False, False

        async def check_table() -> None:
            nonlocal is_same
            with suppress(NotFound):
                is_same = TableProperties.decode(await self._backend.get(PROPERTIES)).id == table

        async def check_start() -> None:
            nonlocal is_archived
            is_archived = await self._is_archived()

        await at_once(check_table, check_start)
        return None if is_same and is_archived else is_same

    async def _is_archived(self) -> bool:
        """Return whether entries of the log are archived. Without a pointer to checkpoints none are."""
        try:
            await self._backend.get(LATEST_CHECKPOINT)
        except NotFound:
            return False
        return await self._furthest_archived() is not None

    async def _furthest_archived(self) -> HistoryBase | None:
        if self._start is None:
            return None
        return await furthest_archived(self._backend, self._start, self.history.table)

    async def _verify(self) -> None:
        """Check that the log continues what was read. Where it was archived since, read it from its checkpoint.

        Raises:
            TableReplaced: it is another log.
        """
        read = self.history
        continues: bool | None = None
        with suppress(CorruptObject):  # opening the log again shows whether that is damage
            continues = await self._continues(read.head + 1)
        if continues is None:
            await self._open_again()
        is_archived = self.history is not read and self.history.base >= read.head
        if continues is not True and not is_archived:
            self.is_replaced = True
            raise self._replaced()
        self._verified_at = anyio.current_time()

    def _replaced(self) -> TableReplaced:
        return TableReplaced(
            f"{shown(self._backend.url)} was removed, created again or restored from a copy while this process wrote "
            "it, or the process was stopped until what it had read was archived: what it has written since does not "
            "count; write again"
        )

    async def _open_again(self) -> None:
        """Do the same as ``_open``. If it fails, what was read before stays, and the next reading verifies it: else the
        log of another table could be read in its place unnoticed.
        """
        read = self.history
        try:
            await self._open()
        finally:
            if not self._is_started:
                self.history, self._is_started, self._verified_at = read, True, -math.inf

    async def _open(self) -> None:
        """Read the log from its newest checkpoint on, or else from the first entry on, up to what a listing shows.

        Where that fails, and there are other checkpoints by now, the log was archived while it was read: it is read
        again.
        """
        self._is_started = False
        while True:
            try:
                return await self._read_from_start()
            except CorruptObject:
                tried = self._manifests
                if (await read_listing(self._backend)).manifests == tried:
                    raise

    async def _read_from_start(self) -> None:
        table, writer_features = self.history.table, self.history.writer_features
        if not self._is_identified:
            with suppress(NotFound):
                properties = TableProperties.decode(await self._backend.get(PROPERTIES))
                table, writer_features = properties.id, frozenset(properties.writer_features)
        listing, base = await self._listed(by_pointer=True)
        if base is not None and self._is_late(base, listing):
            listing, base = await self._listed(by_pointer=False, table=base.table)
        self.history = History(no_history(table, writer_features))
        refused: set[bytes] = set()
        while base is not None and not await self._is_based_on(base, listing):
            if base.table != table or not table:
                break  # of another table, or of one without links: the log is read whole
            if base.hash in refused:
                raise self._lost([LATEST_CHECKPOINT], listing.newest)
            refused.add(base.hash)
            # the pointer may be late, or the log archived since it was read: the newest that is stored decides
            listing, base = await self._listed(by_pointer=False, table=table)
        while self.history.head < listing.newest:
            if not await self._read_window(min(READ_AHEAD, listing.newest - self.history.head)):
                await self._check_later([number for number in listing.numbers if number > self.history.head])
                break
        await self._check_projected(listing)
        self._is_started = True
        self._verified_at = anyio.current_time()

    def _is_late(self, base: HistoryBase, listing: Listing) -> bool:
        """Return whether the pointer that has led to this base is late: there are newer checkpoints, or the log is
        archived further.
        """
        is_archived_further = bool(listing.numbers) and listing.numbers[0] > base.start + 1
        return is_archived_further or (self._start is not None and self._start.is_late(listing.manifests))

    async def _is_based_on(self, base: HistoryBase, listing: Listing) -> bool:
        """Return whether the log has the entry with which a checkpoint ends. If so, continue the history from there.

        If not, a checkpoint of another table, or of one without links, is not used again.
        """
        ahead = min(base.position + READ_AHEAD, max(listing.newest, base.position))
        found = await read_entries(self._backend, range(base.position, ahead + 1))
        table = self.history.table
        if base.table == table and _is_of(base, found):
            self.history = History(base)
            await self._take_in(found, base.position + 1, ahead - base.position)
            return True
        if self._start is not None and (base.table != table or not table):
            self._start.refuse("the log does not contain the entry that it ends with")
        return False

    async def _listed(self, *, by_pointer: bool, table: str = "") -> tuple[Listing, HistoryBase | None]:
        """Return what a listing shows, and the base of the newest checkpoint: the one that the pointer names, which is
        read concurrently, otherwise the newest that was listed.
        """
        listings: list[Listing] = []
        bases: list[HistoryBase | None] = []

        async def look() -> None:
            listings.append(await read_listing(self._backend))

        async def start() -> None:
            bases.append(await self._start.newest(()) if self._start is not None and by_pointer else None)

        await at_once(look, start)
        [listing], [base] = listings, bases
        self.listed_open, self.listed_at = frozenset(listing.open), anyio.current_time()
        self._manifests = listing.manifests
        if base is None and self._start is not None and listing.manifests:
            base = await self._start.newest(listing.manifests, table=table)
        return listing, base

    async def _check_projected(self, listing: Listing) -> None:
        """Check that the log has every commit that the Hudi timeline shows of this table.

        One of another table with the same URL is not evidence: a process that outlived its table may have put it.

        Raises:
            LostEntries: it lacks some.
        """
        history = self.history
        evidence = []
        for instant, path in listing.completed.items():
            if instant != FLOOR and history.decided(instant) is None:
                table = await self._projected_table(path)
                if table == history.table != "" or (table is None and history.head == 0):
                    evidence.append(path)
        while evidence and await self._read_window(1):
            pass  # won, and projected, while the listing was read
        if evidence := [path for path in evidence if history.decided(instant_of_projected(path)) is None]:
            raise self._lost(evidence, history.head)

    async def _projected_table(self, path: str) -> str | None:
        """Return the id of the table that a completed instant of the Hudi timeline records; None where it has none.
        "another" where the file is missing.
        """
        try:
            return projected_table(await self._backend.get(path))
        except NotFound:
            return "another"

    def _lost(self, evidence: Sequence[str], head: int) -> LostEntries:
        others = f" and {len(evidence) - 1} more" if evidence[1:] else ""
        return LostEntries(
            f"{LOG_FOLDER} ends at position {head}, and {evidence[0]}{others} shows a later commit of this table: the "
            "newest entries are lost; restore .hoodie/.tallymark from a copy, or accept the loss of these commits: "
            f"tallymark accept-loss {shown(self._backend.url)}",
            evidence=tuple(evidence),
            head=head,
        )

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
        """Check that all of the listed entries beyond the end are another table's: they are void, and are read as such
        once the log reaches them. If not, an entry before is missing.
        """
        for number in numbers:
            entries = await read_entries(self._backend, [number])
            if number not in entries or entries[number].table == self.history.table:
                raise _gone(self.history.head + 1)

    async def _small_form(self, attempt: Attempt, linked: LogEntry) -> bytes:
        """Return the bytes to put under a number, after the body is durable of an entry that is too large for them."""
        if not attempt.has_body:
            data = encode_entry(linked)
            if len(data) <= BODY_BYTES:
                return data
            await self._backend.put(_body_path(linked), data)
            attempt.has_body = True
        return encode_pointer(linked, _body_path(linked))

    async def _drop_body(self, attempt: Attempt) -> None:
        """Delete the body of an entry that will not be in the log: no reader will request it."""
        if attempt.has_body:
            with suppress(BackendError):
                await self._backend.delete([_body_path(attempt.entry)])


@dataclass(frozen=True, slots=True)
class EntryTimes:
    """When the entries of a log were put, by the store's clock, in seconds since 1970."""

    start: int
    """The position up to which the log is archived."""
    put: tuple[float, ...]
    """Of each later entry, ascending."""

    def at(self, position: int) -> float:
        """Return the time of an entry; of an archived one, the time of the first that is kept, which is later."""
        return self.put[max(position - self.start, 1) - 1]

    @property
    def newest(self) -> float:
        """The time of the newest entry that the listing has shown; 0 where there is none."""
        return max(filter(math.isfinite, self.put), default=0.0)


def _is_of(base: HistoryBase, found: dict[int, LogEntry]) -> bool:
    """Return whether the entry at the base's position is the one that the base ends with."""
    entry = found.get(base.position)
    return entry is not None and next_hash(base.hash_before, base.position, entry) == base.hash


def _gone(number: int) -> CorruptObject:
    return CorruptObject(f"{entry_path(number)} is gone, and later entries are there; restore it from a copy")


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
    path = entry_path(number)
    data = await backend.get(path)
    pointer = decode_pointer(data, source=path)
    if pointer is None:
        return decode_entry(data, source=path)
    try:
        entry = decode_entry(await backend.get(pointer.body), source=pointer.body)
    except NotFound as error:
        await backend.get(path)  # an archive deletes the entry first
        raise CorruptObject(f"{path} refers to {pointer.body}, which is gone; restore it from a copy") from error
    return replace(entry, table=pointer.table, previous=pointer.previous, time_ms=pointer.time_ms)


def new_nonce() -> str:
    return secrets.token_hex(16)


def _body_path(entry: LogEntry) -> str:
    """Return the path of the entry's body. It contains the instant, by which a clean knows whether the body can still
    be requested.
    """
    return f"{BODY_FOLDER}/{entry.instant}/{entry.nonce}"


def _number(path: str) -> int:
    return int(path.rpartition("/")[2])


def entry_path(number: int) -> str:
    """Return the path of the entry at a position."""
    return f"{LOG_FOLDER}/{number:020d}"
