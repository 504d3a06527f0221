"""The seal of an instant: ``.hoodie/.tallymark/seal/<T>``, for tasks that put their own markers.

A service seals in memory, of which a task with direct markers does not learn. So the process that ends an instant puts
this object before it reads the markers, and every task checks for it after its own put: a marker that this reading may
have missed is refused by its task.
"""

from contextlib import suppress

from tallymark.backends.contract import Backend
from tallymark.backends.errors import NotFound
from tallymark.engine.errors import Sealed
from tallymark.engine.timeline.log import read_entry
from tallymark.engine.timeline.reservation import OPEN_FOLDER

SEAL_FOLDER = ".hoodie/.tallymark/seal"


def seal_path(instant: str) -> str:
    return f"{SEAL_FOLDER}/{instant}"


async def check_unsealed(backend: Backend, instant: str, *, base: int) -> None:
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
    await check_undecided(backend, instant, base=base)


async def check_undecided(backend: Backend, instant: str, *, base: int) -> None:
    """Check that the log has not decided the instant, which was undecided up to ``base``.

    Its reservation is read after the log: while that exists, no entry after ``base`` is archived, so the log was read
    to its end.

    Raises:
        Sealed: the instant is decided.
    """
    number = base
    with suppress(NotFound):
        while True:
            number += 1
            entry = await read_entry(backend, number)
            if entry.instant == instant:
                raise Sealed(f"instant {instant} takes no more markers: its {entry.kind} stands at position {number}")
    try:
        await backend.get(f"{OPEN_FOLDER}/{instant}")
    except NotFound:
        raise Sealed(f"instant {instant} takes no more markers: it is over") from None
