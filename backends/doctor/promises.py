"""Probes of the storage contract, one per promise. A probe returns what it observed, or raises Broken."""

import unicodedata
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

import anyio

from tallymark.backends.concurrently import concurrently
from tallymark.backends.doctor.traces import TracedBackend
from tallymark.backends.errors import AlreadyExists, NotFound

RACERS = 32
ROUNDS = 8
"""Names that are raced for. A server that looks and then writes loses one race of some hundred; one that does not look
loses them all."""

ROUNDS_S_MAX = 4.0
"""No race begins after that time: slow stores see fewer of them, and two at least."""

MANY = 1_100
"""Objects listed, and deleted in one call: more than a page, and than one bulk request, of a store that takes 1,000."""

MANY_S_MAX = 6.0
"""Time to put them; a slow store gets fewer."""

AT_ONCE = 32
"""Requests in flight while many objects are put."""

LARGE_BYTES = 12_000_128
"""More than clients put in one part."""

STAGING = "staged"

ODD_NAMES = (
    "a b/c  d.bin",
    "year=2013/month=1",
    "city=S%C3%A3o%2FPaulo/%2F",
    "a+b&c/+",
    "comma,semicolon;/quote'\"",
    "back\\slash",
    "brackets[1]/*?{}",
    "#fragment?query=1",
    "...",
    ".hidden/~tilde/-dash",
    "\N{GRINNING FACE}/日本",
    *(unicodedata.normalize(form, "Äé") for form in ("NFC", "NFD")),
    "äé",
    "/".join(["a" * 200] * 4),
)
"""Partition values and what people call their columns: each has to come back exactly, and none may be another."""


class Broken(Exception):
    """The promise does not hold; the message says what was seen instead."""


@dataclass(frozen=True, slots=True)
class Probe:
    promise: str
    run: Callable[[TracedBackend], Awaitable[str]]


async def takes_and_gives_back(backend: TracedBackend) -> str:
    await backend.put("taken", b"first")
    _same(await backend.get("taken"), b"first", "taken")
    await backend.put("taken", b"second")
    _same(await backend.get("taken"), b"second", "taken, put a second time,")
    return "an object, and the one that replaced it"


async def shows_each_put_at_once(backend: TracedBackend) -> str:
    """Also where the name was asked for in vain just before: some stores remember that."""
    for number in range(5):
        path = f"fresh/{number}"
        try:
            await backend.get(path)
        except NotFound:
            pass
        else:
            raise Broken(f"{path} was never put, and could be read")
        await backend.put(path, b"%d" % number)
        try:
            _same(await backend.get(path), b"%d" % number, path)
        except NotFound:
            raise Broken(f"{path} had been put, and was not found") from None
    return "5 names that were asked for in vain just before"


async def creates_once(backend: TracedBackend) -> str:
    """Equal bytes make no difference: whoever is told that he created the name is the only one."""
    await backend.put_new("once", b"first")
    for data in (b"second", b"first"):
        try:
            await backend.put_new("once", data)
        except AlreadyExists:
            _same(await backend.get("once"), b"first", "once")
        else:
            raise Broken("a name was created twice: the store ignores put-if-absent (If-None-Match: *)")
    await backend.delete(["once"])
    await backend.put_new("once", b"third")
    _same(await backend.get("once"), b"third", "once")
    return "the second is refused, and the name is free after its delete"


async def has_one_winner(backend: TracedBackend) -> str:
    until = anyio.current_time() + ROUNDS_S_MAX
    rounds = 0
    while rounds < 2 or (rounds < ROUNDS and anyio.current_time() < until):
        path = f"race/{rounds}"
        won = await _race(backend, path)
        if len(won) != 1:
            raise Broken(f"of {RACERS} writers who created one name at once {len(won)} were told that they had")
        _same(await backend.get(path), won[0], f"the winner's {path}")
        rounds += 1
    return f"{RACERS} writers, {rounds} names: one winner each, whose bytes stay"


class Many:
    """Many objects: put, listed, and deleted."""

    def __init__(self) -> None:
        self._paths: list[str] = []

    async def lists_what_is_there(self, backend: TracedBackend) -> str:
        await _put_all(backend, ["many/sub/x", "many10/x"])
        until = anyio.current_time() + MANY_S_MAX
        while len(self._paths) < MANY and anyio.current_time() < until:
            more = [f"many/{number:04}" for number in range(len(self._paths), len(self._paths) + AT_ONCE)]
            await _put_all(backend, more)
            self._paths += more
        _listed(await _list(backend, "many"), [*self._paths, "many/sub/x"])
        return f"{len(self._paths):,} objects just put, sorted, each once, and no other directory's"

    async def deletes_many(self, backend: TracedBackend) -> str:
        if not self._paths:
            raise Broken("there was nothing to delete: no object could be put")
        absent = [f"many/absent{number:04}" for number in range(MANY)]
        await backend.delete([*absent, *self._paths])
        _listed(await _list(backend, "many"), ["many/sub/x"])
        try:
            await backend.get(self._paths[0])
        except NotFound:
            return f"{len(self._paths):,} objects in one call, among {len(absent):,} absent ones; listed no more"
        raise Broken(f"{self._paths[0]} had been deleted, and could be read")


async def keeps_names(backend: TracedBackend) -> str:
    for name in ODD_NAMES:
        await backend.put_new(f"odd/{name}", f"odd/{name}".encode())
    _listed(await _list(backend, "odd"), sorted(f"odd/{name}" for name in ODD_NAMES))
    for name in ODD_NAMES:
        _same(await backend.get(f"odd/{name}"), f"odd/{name}".encode(), f"odd/{name}")
    await backend.delete([f"odd/{name}" for name in ODD_NAMES])
    _listed(await _list(backend, "odd"), [])
    return f"{len(ODD_NAMES)} names with blanks, percent signs, quotes, upper and lower case, both forms of Unicode"


async def keeps_large_objects(backend: TracedBackend) -> str:
    data = bytes(range(256)) * (LARGE_BYTES // 256)
    await backend.put_new("large", data)
    _same(await backend.get("large"), data, "large")
    await backend.delete(["large"])
    return f"{LARGE_BYTES // 1_000_000} MB"


async def publishes_whole_files(backend: TracedBackend) -> str:
    await backend.open_staging(STAGING)
    await _publish(backend, "file", b"rows")
    _same(await backend.get("file"), b"rows", "file")
    try:
        await _publish(backend, "file", b"other rows")
    except AlreadyExists:
        _same(await backend.get("file"), b"rows", "file")
        return "a data file arrives whole, and replaces nothing"
    raise Broken("a data file replaced another one of its name")


async def closes_staging(backend: TracedBackend) -> str:
    await backend.open_staging(STAGING)
    file = backend.new_file("late", staging=STAGING)
    try:
        file.sink.write(b"late rows")
        await backend.close_staging(STAGING)
        try:
            await backend.in_thread(file.publish)
        except NotFound:
            return "what was begun before can be published no more"
        raise Broken("a data file was published from a staging directory that had been closed")
    finally:
        file.abandon()


def probes(*, has_staging: bool) -> list[Probe]:
    """Those that concern a store of this family, the most important first."""
    many = Many()
    found = [
        Probe("gives back what it was given", takes_and_gives_back),
        Probe("creates a name once", creates_once),
        Probe("has one winner of a race", has_one_winner),
        Probe("shows a put at once", shows_each_put_at_once),
        Probe("publishes data files whole", publishes_whole_files),
        Probe("closes staging for good", closes_staging),
        Probe("keeps odd names", keeps_names),
        Probe("keeps large objects", keeps_large_objects),
        Probe("lists what is there", many.lists_what_is_there),
        Probe("deletes many at once", many.deletes_many),
    ]
    return [probe for probe in found if has_staging or probe.run is not closes_staging]


async def _race(backend: TracedBackend, path: str) -> list[bytes]:
    """Return the bytes of those who were told that they had created the name."""
    won = []

    async def create(number: int) -> None:
        data = b"%d" % number
        try:
            await backend.put_new(path, data)
        except AlreadyExists:
            return
        won.append(data)

    await concurrently(create, range(RACERS), limit=RACERS)
    return won


async def _put_all(backend: TracedBackend, paths: Iterable[str]) -> None:
    """Each path as its own bytes."""
    await concurrently(lambda path: backend.put(path, path.encode()), paths, limit=AT_ONCE)


async def _publish(backend: TracedBackend, path: str, data: bytes) -> None:
    def publish() -> None:
        file = backend.new_file(path, staging=STAGING)
        try:
            file.sink.write(data)
            file.publish()
        finally:
            file.abandon()

    await backend.in_thread(publish)


async def _list(backend: TracedBackend, directory: str) -> list[str]:
    return [entry.path async for entry in backend.list(directory)]


def _same(found: bytes, wanted: bytes, what: str) -> None:
    if found != wanted:
        raise Broken(f"{what} came back as other bytes ({len(found):,} where {len(wanted):,} had been put)")


def _listed(found: list[str], wanted: list[str]) -> None:
    if found == wanted:
        return
    if len(set(found)) < len(found):
        raise Broken(f"a listing shows {len(found) - len(set(found)):,} entries twice")
    if missing := sorted(set(wanted) - set(found)):
        raise Broken(f"a listing lacks {len(missing):,} of {len(wanted):,} objects, such as {missing[0]!r}")
    if stray := sorted(set(found) - set(wanted)):
        raise Broken(f"a listing shows {len(stray):,} objects that are not there, such as {stray[0]!r}")
    raise Broken("a listing is not sorted by path")
