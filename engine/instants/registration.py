"""Registration of writers by number, and the search for open ones by gets of known names, without a listing.

A writer takes the number k = 1, 2, ... by putting ``begun/<k>`` if absent, before anything else of its instant; the
object has the content of its reservation. These rules keep every open instant visible:

- *Take.* A writer puts k after it has seen each smaller number: its object, or a log entry with a number as great.
- *Check.* After that put, and its reservation, it reads the log. If an entry has k or a greater number by then, other
  writers may have passed k while it was missing: k is given back, and a greater one taken. Nothing was written under k.
- *Drop.* An object ``begun/<k>`` is deleted only by writers that have read an entry with k or a greater number, and
  after ``open/<T>``: what a writer leaves that stops in between is visible to the next ones.
- *Record.* The entry that decides an instant has its number, and the smaller ones that were not over when it was taken.

So a number that was put and is missing now has an entry as great in the log: below an existing number there is no gap
except those that the log records. A writer that has put the first free number, and passes the check, has seen all that
started before. By the entry with the greatest number k the smaller ones are over, except those that it names; those, k
itself and the numbers after it are read, with one get each. If one of these up to k is missing, it is over or will be
given back by its writer: the get followed the reading of the entry. An existing number is over if its instant is
decided, and its reservation is found missing after that. Numbers are not used again: a put or a delete of one that
arrives late changes nothing.

Owns: taking, finding and giving back numbers. Does not own: what is done about open writers (``maintenance.recovery``).
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from tallymark.backends.concurrently import concurrently
from tallymark.backends.errors import AlreadyExists, NotFound
from tallymark.backends.events import EventLog
from tallymark.engine.errors import CorruptObject
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.instant import FLOOR, instant_time, parse_instant
from tallymark.engine.timeline.log import READ_AHEAD
from tallymark.engine.timeline.registration import (
    REGISTRATION_FOLDER,
    UNNUMBERED,
    registration_number,
    registration_path,
)
from tallymark.engine.timeline.reservation import OPEN_FOLDER, UNKNOWN_OPERATION, Reservation
from tallymark.engine.timeline.writer_identity import WriterIdentity

_events = EventLog(__name__)


@dataclass(slots=True)
class Registered:
    """Result of one search of the numbers."""

    free: int
    """The first number that no writer has taken."""
    open: dict[int, Reservation] = field(default_factory=dict)
    """The numbers that are not over, with the reservations of their writers."""
    left: list[int] = field(default_factory=list)
    """The numbers that are over and whose objects exist: their writers will drop them, or have died before they did."""


async def find_registered(handle: TableHandle) -> Registered:
    """Return the registered writers that are open, by the log as far as it was read. Changes nothing.

    Raises:
        CorruptObject: a writer's object cannot be read.
    """
    known = handle.log.history.registration
    found = Registered(free=known.number + 1)

    async def examine(number: int) -> None:
        reservation = handle.own_numbers.get(number) or await read_registration(handle, registration_path(number))
        if reservation is None:
            if number <= known.number:
                handle.over_numbers.add(number)
        elif number not in handle.own_numbers and await is_over(handle, reservation):
            found.left.append(number)
        else:
            found.open[number] = reservation

    numbers: Sequence[int] = [*(number for number in known.doubtful if number not in handle.over_numbers), found.free]
    window = 1
    while True:
        await concurrently(examine, numbers, limit=handle.commit_settings.concurrency)
        while found.free in found.open or found.free in found.left:
            found.free += 1
        if found.free <= numbers[-1]:
            return found  # it was looked for, and is not there
        numbers = range(found.free, found.free + window)
        window = min(2 * window, READ_AHEAD)


async def open_instants(handle: TableHandle, found: Registered) -> set[str]:
    """Return the instants of the open writers. Lists the folder only where unregistered writers may be open."""
    instants = {reservation.instant for reservation in found.open.values()}
    if UNNUMBERED in handle.log.history.registration.unfinished:
        instants |= {entry.path.rpartition("/")[2] async for entry in handle.backend.list(OPEN_FOLDER)}
    return instants


async def read_registration(handle: TableHandle, path: str) -> Reservation | None:
    """Return the reservation of the writer of a number; None where the number is free, or was dropped.

    The object of a number and that of its instant have the same content: each is read in place of the other where that
    is damaged.

    Raises:
        CorruptObject: it is damaged, and no instant has the number.
    """
    try:
        data = await handle.backend.get(path)
    except NotFound:
        return None
    try:
        found = Reservation.decode(data, source=path)
        if found.registration != registration_number(path):
            raise CorruptObject(f"{path} has the content of number {found.registration}")
    except CorruptObject as error:
        _events.warning("reservation.damaged", path=path, reason=error)
        found_elsewhere = await _find(handle, OPEN_FOLDER, registration=registration_number(path))
        if found_elsewhere is None:
            raise CorruptObject(f"{error}; if no write is running, delete it") from error
        return found_elsewhere
    return found


async def read_reservation(handle: TableHandle, path: str) -> Reservation:
    """Return the reservation of an instant.

    A damaged one is read from the object of its writer's number. If there is none, its writer is unknown, and its lease
    alone decides whether it is dead.

    Raises:
        NotFound: the instant is not reserved, or no longer.
        CorruptObject: the name of the object is not an instant.
    """
    instant = path.rpartition("/")[2]
    data = await handle.backend.get(path)
    try:
        found = Reservation.decode(data, source=path)
        if found.instant != instant:
            raise CorruptObject(f"{path} has the content of instant {found.instant}")
    except CorruptObject as error:
        _events.warning("reservation.damaged", path=path, reason=error)
        parse_instant(instant)
        return await _find(handle, REGISTRATION_FOLDER, instant=instant) or Reservation(
            instant=instant,
            nonce="",
            writer=WriterIdentity(host="unknown", boot_id=None, pid_namespace=None, pid=1, started=None),
            marker_kind="batched",
            operation=UNKNOWN_OPERATION,
            expiry_s=handle.lease_settings.expiry_s,
        )
    return found


async def _find(handle: TableHandle, folder: str, **fields: object) -> Reservation | None:
    """Return the readable reservation below the folder that has these fields."""
    for path in [entry.path async for entry in handle.backend.list(folder)]:
        with suppress(NotFound, CorruptObject):
            found = Reservation.decode(await handle.backend.get(path), source=path)
            if all(getattr(found, name) == value for name, value in fields.items()):
                return found
    return None


async def is_over(handle: TableHandle, reservation: Reservation) -> bool:
    """Return whether everything is done for its instant, or no process will ever continue it.

    The log is read first: a writer that finds its instant decided after its own reservation gives it up.
    """
    instant = reservation.instant
    if handle.log.history.decided(instant) is None and (await handle.log.refresh()).decided(instant) is None:
        return False
    try:
        await handle.backend.get(reservation.path)
    except NotFound:
        return True
    return False


async def take(handle: TableHandle, draft: Reservation) -> Reservation:
    """Take a number for the writer, so that every later reader finds it. Numbers that are over, and were left, are
    dropped.

    Its instant is later than those of all open writers with smaller numbers: no two writers use one instant, nor one
    heartbeat.
    """
    while True:
        found = await find_registered(handle)
        await drop(handle, found.left)
        unfinished = {number for number in found.open if number < found.free}
        unfinished.update({UNNUMBERED}.intersection(handle.log.history.registration.unfinished))
        instant = _later(draft.instant, found.open.values())
        mine = replace(draft, instant=instant, registration=found.free, unfinished=tuple(sorted(unfinished)))
        if await _is_put(handle, mine):
            handle.own_numbers[mine.registration] = mine
            return mine
        await handle.log.refresh()


def _later(instant: str, others: Iterable[Reservation]) -> str:
    return instant_time(parse_instant(instant), after=max((other.instant for other in others), default=FLOOR))


async def _is_put(handle: TableHandle, mine: Reservation) -> bool:
    path = registration_path(mine.registration)
    try:
        await handle.backend.put_new(path, mine.encode())
    except AlreadyExists:
        return await read_registration(handle, path) == mine  # by an earlier put, whose answer is missing
    return True


def is_passed(history: History, reservation: Reservation) -> bool:
    """Return whether other writers may have passed its number while it was missing. The log was read after its put."""
    return history.registration.number >= reservation.registration


async def give_back(handle: TableHandle, reservation: Reservation) -> None:
    """Give back a number under which nothing was written. It is deleted now, or when the log has passed it."""
    handle.given_back.add(reservation.registration)
    await drop(handle, ())


async def drop(handle: TableHandle, numbers: Iterable[int]) -> None:
    """Drop these numbers, and those given back, as far as the log has a number as great; later writers drop the
    others.
    """
    greatest = handle.log.history.registration.number
    known = {number for number in {*numbers, *handle.given_back} if UNNUMBERED < number <= greatest}
    if known:
        await handle.backend.delete([registration_path(number) for number in sorted(known)])
        handle.over_numbers |= known
        handle.given_back -= known
        for number in known:
            handle.own_numbers.pop(number, None)
