"""Probes of the doctor: each tries one promise by ``backends/checks.py``, and returns what it observed."""

import unicodedata
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio

from tallymark.backends import checks
from tallymark.backends.checks import STAGING, Broken
from tallymark.backends.doctor.traces import TracedBackend

RACERS = 32
ROUNDS = 8
"""Names raced for. A server that checks and then writes loses one race of a hundred or more; one that does not check
loses them all."""

ROUNDS_S_MAX = 4.0
"""No race starts after this time. A slow store gets fewer races, but at least two."""

MANY = 1_100
"""Objects listed, and deleted in one call: more than a page, and than one bulk request, of a store that takes 1,000."""

MANY_S_MAX = 6.0
"""Time to put them; a slow store gets fewer."""

AT_ONCE = 32
"""Requests in flight while many objects are put."""

LARGE_BYTES = 12_000_128
"""More than clients put in one part."""

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
"""Without those that HDFS refuses, and those that are too long below a directory."""


@dataclass(frozen=True, slots=True)
class Probe:
    promise: str
    run: Callable[[TracedBackend], Awaitable[str]]


async def takes_and_gives_back(backend: TracedBackend) -> str:
    await checks.replaces(backend, "taken")
    await checks.has_ranges(backend, "taken", b"second")
    return "an object, the one that replaced it, and ranges of it"


async def shows_each_put_at_once(backend: TracedBackend) -> str:
    for number in range(5):
        await checks.shows_a_put_at_once(backend, f"fresh/{number}")
    return "5 names that were read just before they existed"


async def creates_once(backend: TracedBackend) -> str:
    await checks.refuses_a_taken_name(backend, "once", first=b"first", others=[b"second", b"first"])
    await checks.frees_a_deleted_name(backend, "once")
    return "the second is refused, and the name is free after its delete"


async def has_one_winner(backend: TracedBackend) -> str:
    until = anyio.current_time() + ROUNDS_S_MAX
    rounds = 0
    while rounds < 2 or (rounds < ROUNDS and anyio.current_time() < until):
        await checks.has_one_winner(backend, f"race/{rounds}", [b"%d" % number for number in range(RACERS)])
        rounds += 1
    return f"{RACERS} writers, {rounds} names: one winner each, whose bytes stay"


class Many:
    """Many objects: put, listed, and deleted."""

    def __init__(self) -> None:
        self._paths: list[str] = []

    async def lists_what_is_there(self, backend: TracedBackend) -> str:
        await checks.put_all(backend, ["many/sub/x", "many10/x"], limit=AT_ONCE)
        until = anyio.current_time() + MANY_S_MAX
        while len(self._paths) < MANY and anyio.current_time() < until:
            more = [f"many/{number:04}" for number in range(len(self._paths), len(self._paths) + AT_ONCE)]
            await checks.put_all(backend, more, limit=AT_ONCE)
            self._paths += more
        await checks.lists(backend, "many", [*self._paths, "many/sub/x"])
        return f"{len(self._paths):,} objects just put, sorted, each once, and no other directory's"

    async def deletes_many(self, backend: TracedBackend) -> str:
        if not self._paths:
            raise Broken("there was nothing to delete: no object could be put")
        absent = [f"many/absent{number:04}" for number in range(MANY)]
        await checks.deletes(backend, self._paths, absent=absent)
        await checks.lists(backend, "many", ["many/sub/x"])
        return f"{len(self._paths):,} objects in one call, among {len(absent):,} absent ones; listed no more"


async def keeps_names(backend: TracedBackend) -> str:
    await checks.keeps_names(backend, "odd", list(ODD_NAMES))
    return f"{len(ODD_NAMES)} names with blanks, percent signs, quotes, upper and lower case, both forms of Unicode"


async def keeps_large_objects(backend: TracedBackend) -> str:
    data = bytes(range(256)) * (LARGE_BYTES // 256)
    await checks.creates(backend, "large", data)
    await backend.delete(["large"])
    return f"{LARGE_BYTES // 1_000_000} MB"


async def publishes_whole_files(backend: TracedBackend) -> str:
    await backend.open_staging(STAGING)
    await checks.publishes_once(backend, "file", in_thread=backend.in_thread)
    return "a data file arrives whole, and replaces nothing"


async def closes_staging(backend: TracedBackend) -> str:
    await checks.closes_staging(backend, ["late"], in_thread=backend.in_thread)
    return "a file started before can no longer be published"


def probes(*, has_staging: bool) -> list[Probe]:
    """Return those that concern a store of this family, the most important first."""
    many = Many()
    found = [
        Probe("gives back what it was given", takes_and_gives_back),
        Probe("creates a name once", creates_once),
        Probe("has one winner of a race", has_one_winner),
        Probe("shows a put at once", shows_each_put_at_once),
        Probe("publishes data files whole", publishes_whole_files),
        Probe("closes staging permanently", closes_staging),
        Probe("keeps odd names", keeps_names),
        Probe("keeps large objects", keeps_large_objects),
        Probe("lists what is there", many.lists_what_is_there),
        Probe("deletes many at once", many.deletes_many),
    ]
    return [probe for probe in found if has_staging or probe.run is not closes_staging]
