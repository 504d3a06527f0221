"""The seal of an instant: ``.hoodie/.tallymark/seal/<T>``, for tasks that put their own markers.

A service seals in memory, of which a task with direct markers does not learn. So the process that ends an instant puts
this object before it reads the markers, and every task checks for it after its own put: a marker that this reading may
have missed is refused by its task.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from tallymark.backends.concurrently import concurrently
from tallymark.backends.contract import Backend
from tallymark.backends.errors import NotFound
from tallymark.engine.errors import Sealed
from tallymark.engine.timeline.log import LATEST_CHECKPOINT, entry_path, read_entry
from tallymark.engine.timeline.reservation import OPEN_FOLDER

SEAL_FOLDER = ".hoodie/.tallymark/seal"


def seal_path(instant: str) -> str:
    return f"{SEAL_FOLDER}/{instant}"


IsArchived = Callable[[], Awaitable[bool]]


async def check_unsealed(backend: Backend, instant: str, *, base: int, is_archived: IsArchived) -> None:
    """Check that the instant still accepts markers.

    The seal is read first, the log second: a seal is deleted only after the log has decided the instant.

    Raises:
        Sealed: it does not.
    """
    try:
        await backend.get(seal_path(instant))
    except NotFound:
        pass
    else:
        raise Sealed(f"instant {instant} takes no more markers: it is being committed or rolled back")
    await check_undecided(backend, instant, base=base, is_archived=is_archived)


async def check_undecided(backend: Backend, instant: str, *, base: int, is_archived: IsArchived) -> None:
    """Check that the log has not decided the instant, which was undecided up to ``base``.

    Its reservation is read after the log, and the oldest of these entries once more: while both exist, none after
    ``base`` is archived, so the log was read to its end. The reservation alone may be a put that has arrived once more
    after the instant was over. ``is_archived`` is called where there is a checkpoint and no first entry: the checkpoint
    may be of a table that was here before.

    Raises:
        Sealed: the instant is decided.
    """
    number = base
    with suppress(NotFound):
        while True:
            number += 1
            entry = await read_entry(backend, number)
            for member in entry.members:
                if member.instant == instant:
                    raise Sealed(
                        f"instant {instant} takes no more markers: its {member.kind} stands at position {number}"
                    )
    reservation, oldest = f"{OPEN_FOLDER}/{instant}", entry_path(max(base, 1)) if number > 1 else LATEST_CHECKPOINT
    found = set()

    async def look(path: str) -> None:
        with suppress(NotFound):
            await backend.get(path)
            found.add(path)

    await concurrently(look, [reservation, oldest], limit=2)
    if LATEST_CHECKPOINT in found:  # of a log without a first entry: that is archived, or came after it was read
        await look(entry_path(1))
        if entry_path(1) in found:
            await check_undecided(backend, instant, base=base, is_archived=is_archived)
            return
        if not await is_archived():
            found.discard(LATEST_CHECKPOINT)
    if reservation not in found or (number > 1) != (oldest in found):
        raise Sealed(f"instant {instant} takes no more markers: it is over")
