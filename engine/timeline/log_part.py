"""The log up to a position that is known to exist: read by numbers alone, without a listing."""

from contextlib import suppress

from tallymark.backends.concurrently import concurrently
from tallymark.backends.contract import Backend
from tallymark.backends.errors import NotFound
from tallymark.engine.errors import CorruptObject
from tallymark.engine.timeline.entry import LogEntry
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.log import LOG_FOLDER, READ_AHEAD, read_entry


async def read_until(backend: Backend, position: int, log_hash: str) -> History:
    """The history up to a position, at which the log has this hash.

    Raises:
        CorruptObject: an entry cannot be read, or is gone; or the log there is another one.
    """
    history = History()
    while history.head < position:
        for entry in await _entries(backend, range(history.head + 1, min(history.head + READ_AHEAD, position) + 1)):
            history.apply(entry)
    if history.hash_at(position) != log_hash:
        raise CorruptObject(
            f"{LOG_FOLDER} is not the log that the job began with: at position {position} its hash is "
            f"{history.hash_at(position)[:16]!r}, not {log_hash[:16]!r}; has the table been made anew?"
        )
    return history


async def _entries(backend: Backend, numbers: range) -> list[LogEntry]:
    found: dict[int, LogEntry] = {}

    async def read(number: int) -> None:
        with suppress(NotFound):
            found[number] = await read_entry(backend, number)

    await concurrently(read, numbers, limit=len(numbers))
    missing = next((number for number in numbers if number not in found), None)
    if missing is not None:
        raise CorruptObject(f"entry {missing} of {LOG_FOLDER} is gone, and was there; restore it from a copy")
    return [found[number] for number in numbers]
