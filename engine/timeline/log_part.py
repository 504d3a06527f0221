"""The log up to a position that is known to exist: read by numbers alone, without a listing."""

from tallymark.backends.contract import Backend
from tallymark.engine.errors import CorruptObject
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.history_base import NO_HISTORY, HistoryBase
from tallymark.engine.timeline.log import LOG_FOLDER, READ_AHEAD, read_entries


async def read_until(backend: Backend, position: int, log_hash: str, *, start: HistoryBase = NO_HISTORY) -> History:
    """Return the history from ``start`` to a position, at which the log has this hash.

    Raises:
        CorruptObject: an entry is unreadable or missing; or the log, or ``start``, is of another one.
    """
    history = History(start)
    while history.head < position:
        window = range(history.head + 1, min(history.head + READ_AHEAD, position) + 1)
        found = await read_entries(backend, window)
        for number in window:
            if number not in found:
                raise CorruptObject(f"entry {number} of {LOG_FOLDER} is gone, and was there; restore it from a copy")
            history.apply(found[number])
    if history.hash_at(position) != log_hash:
        raise CorruptObject(
            f"{LOG_FOLDER} is not the log that the job began with: at position {position} its hash is "
            f"{history.hash_at(position)[:16]!r}, not {log_hash[:16]!r}; was the table created again?"
        )
    return history
