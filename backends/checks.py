"""Checks of the storage contract, each an async function that raises Broken where a store breaks a promise.

Owns: how a promise of ``contract`` is tried through a backend. The command ``tallymark doctor`` calls the checks within
a time limit; the pytest kit in ``testing`` calls them with more callers and objects, and then reads the store without
the backend. The caller deletes what a check leaves.
"""

import unicodedata
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from itertools import zip_longest
from typing import TypeVar

import anyio
import anyio.to_thread

from tallymark.backends.concurrently import concurrently
from tallymark.backends.contract import Backend
from tallymark.backends.errors import AlreadyExists, NotFound

T = TypeVar("T")

InThread = Callable[[Callable[[], T]], Awaitable[T]]
"""Makes a blocking call beside the event loop."""

STAGING = ".hoodie/.temp/001/staged"

ODD_PATHS = [
    "a b/c  d.parquet",
    " leading and trailing ",
    "year=2013/month=1/x.parquet",
    "city=S%C3%A3o%2FPaulo/%2F",
    "a+b/+",
    "100%/%/%zz/%00/%2e%2e",
    "comma,semicolon;/quote'\"",
    "back\\slash",
    "brackets[1]/*?{}",
    "#fragment?query=1&more",
    "s3:/bucket/:key",
    "<xml>&amp;]]></xml>",
    "...",
    ".hidden/~tilde/-dash",
    "tab is a control, but \u2028 and \u0085 are not",
    "\N{GRINNING FACE}/日本",
    "a" * 255,
    "/".join(["é" * 127] * 4),
    "/".join(["a" * 255] * 4),
]
"""Names that a store has to keep exactly: partition values and column names in use. The last two are as long as paths
and segments may be."""

UNICODE_FORMS = [*(unicodedata.normalize(form, "Äé") for form in ("NFC", "NFD")), "äé"]
"""Names that differ in Unicode form or case alone."""


class Broken(Exception):
    """The promise does not hold. The message states what was seen instead."""


async def in_thread(function: Callable[[], T]) -> T:
    """Run a blocking call in a thread. A caller that is cancelled stops waiting for it."""
    return await anyio.to_thread.run_sync(function, abandon_on_cancel=True)


async def replaces(backend: Backend, path: str) -> None:
    """Put an object and then another at its path; each can be read."""
    await backend.put(path, b"first")
    await has_bytes(backend, path, b"first")
    await backend.put(path, b"second")
    await has_bytes(backend, path, b"second", f"{path}, put a second time,")


async def shows_a_put_at_once(backend: Backend, path: str) -> None:
    """Read the path before and after a put: some stores cache that it was absent."""
    await is_absent(backend, path, f"{path} was never put, and could be read")
    await backend.put(path, path.encode())
    try:
        await has_bytes(backend, path, path.encode())
    except NotFound:
        raise Broken(f"{path} had been put, and was not found") from None


async def creates(backend: Backend, path: str, data: bytes) -> None:
    """Create an object, which can be read whole."""
    await backend.put_new(path, data)
    await has_bytes(backend, path, data)


async def refuses_a_taken_name(backend: Backend, path: str, *, first: bytes, others: Sequence[bytes]) -> None:
    """Create the object; each further create is refused, and its bytes stay."""
    await backend.put_new(path, first)
    for data in others:
        await refuses_to_create(backend, path, data)
        await has_bytes(backend, path, first)


async def refuses_to_create(backend: Backend, path: str, data: bytes) -> None:
    """Check that the name is taken."""
    try:
        await backend.put_new(path, data)
    except AlreadyExists:
        return
    raise Broken("a name was created twice: the store ignores put-if-absent (If-None-Match: *)")


async def frees_a_deleted_name(backend: Backend, path: str) -> None:
    """Delete the object that is at the path, create another, and be refused a third."""
    await backend.delete([path])
    await refuses_a_taken_name(backend, path, first=b"after a delete", others=[b"another"])


async def has_one_winner(backend: Backend, path: str, writers: Sequence[bytes]) -> bytes:
    """Create one name by all writers at once, each with its bytes. Return those of the one that succeeded."""
    won = []

    async def create(data: bytes) -> None:
        try:
            await backend.put_new(path, data)
        except AlreadyExists:
            return
        won.append(data)

    await concurrently(create, writers, limit=len(writers))
    if len(won) != 1:
        raise Broken(f"of {len(writers)} writers that created one name at once {len(won)} succeeded")
    await has_bytes(backend, path, won[0], f"the winner's {path}")
    return won[0]


async def keeps_names(backend: Backend, directory: str, names: Iterable[str]) -> None:
    """Create, list, read and delete objects of these names below the directory."""
    paths = [f"{directory}/{name}" for name in names]
    await concurrently(lambda path: backend.put_new(path, path.encode()), paths, limit=8)
    await lists(backend, directory, paths)
    await concurrently(lambda path: has_bytes(backend, path, path.encode()), paths, limit=8)
    await backend.delete(paths)
    await lists(backend, directory, [])


async def deletes(backend: Backend, paths: Sequence[str], *, absent: Sequence[str]) -> None:
    """Delete the objects in one call that names absent ones, too."""
    await backend.delete([path for pair in zip_longest(absent, paths) for path in pair if path])
    await is_absent(backend, paths[0], f"{paths[0]} had been deleted, and could be read")


async def publishes_once(backend: Backend, path: str, *, in_thread: InThread[None] = in_thread) -> None:
    """Publish a data file, and another of its name, which is refused. Staging has to be open."""
    await in_thread(lambda: write_data_file(backend, path, b"rows"))
    await has_bytes(backend, path, b"rows")
    try:
        await in_thread(lambda: write_data_file(backend, path, b"other rows"))
    except AlreadyExists:
        await has_bytes(backend, path, b"rows")
        return
    raise Broken("a data file replaced another one of its name")


async def closes_staging(
    backend: Backend, paths: Sequence[str], *, reopens: bool = False, in_thread: InThread[None] = in_thread
) -> None:
    """Start data files, close their staging directory, perhaps open it again, and be refused to publish each."""
    await backend.open_staging(STAGING)
    files = [backend.new_file(path, staging=STAGING) for path in paths]
    try:
        for file in files:
            file.sink.write(b"late rows" * 1000)
        await backend.close_staging(STAGING)
        if reopens:
            await backend.open_staging(STAGING)
        for file in files:
            file.sink.write(b" and more")
            try:
                await in_thread(file.publish)
            except NotFound:
                continue
            raise Broken("a data file was published from a staging directory that had been closed")
    finally:
        for file in files:
            file.abandon()


def write_data_file(backend: Backend, path: str, data: bytes) -> None:
    """Write and publish a data file. Blocking; staging has to be open."""
    file = backend.new_file(path, staging=STAGING)
    try:
        file.sink.write(data)
        file.publish()
    finally:
        file.abandon()


async def put_all(backend: Backend, paths: Iterable[str], *, limit: int) -> None:
    """Put an object at each path, its path as its bytes."""
    await concurrently(lambda path: backend.put(path, path.encode()), paths, limit=limit)


async def listed(backend: Backend, directory: str = "") -> list[str]:
    """Return the paths below the directory, in the order of the listing."""
    return [entry.path async for entry in backend.list(directory)]


async def lists(backend: Backend, directory: str, paths: Iterable[str]) -> None:
    """Check that a listing shows exactly these paths, sorted."""
    found, wanted = await listed(backend, directory), sorted(paths)
    if found == wanted:
        return
    if twice := sum(count - 1 for count in Counter(found).values()):
        raise Broken(f"a listing shows {twice:,} entries twice")
    if missing := sorted(set(wanted) - set(found)):
        raise Broken(f"a listing lacks {len(missing):,} of {len(wanted):,} objects, such as {missing[0]!r}")
    if stray := sorted(set(found) - set(wanted)):
        raise Broken(f"a listing shows {len(stray):,} objects that are not there, such as {stray[0]!r}")
    raise Broken("a listing is not sorted by path")


async def has_bytes(backend: Backend, path: str, data: bytes, what: str = "") -> None:
    """Check that the object has these bytes. Raises NotFound."""
    found = await backend.get(path)
    if found != data:
        raise Broken(f"{what or path} was read with other bytes ({len(found):,} where {len(data):,} had been put)")


async def has_ranges(backend: Backend, path: str, data: bytes) -> None:
    """Check ranges of the object, which has these bytes: some within it, across its end and beyond it."""
    size = len(data)
    for start, length in ((0, size), (1, size // 2), (size // 2, size), (size - 1, 1), (size, 1), (size + 1, size)):
        found = await backend.get_range(path, start, length)
        if found != data[start : start + length]:
            raise Broken(f"a range of {path}, {length:,} bytes from {start:,} on, was read with other bytes")


async def is_absent(backend: Backend, path: str, broken: str) -> None:
    """Check that the path cannot be read; ``broken`` is the message if it can."""
    try:
        await backend.get(path)
    except NotFound:
        return
    raise Broken(broken)
