"""View of a log up to a position that is known to exist, for a reader that knows only that position and its hash.

Nothing is listed. A listing would not help: it shows which files exist, but not which are committed, nor at which
position.
"""

from tallymark.backends.contract import Backend
from tallymark.engine.errors import CorruptObject
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.history_base import HistoryBase, no_history
from tallymark.engine.timeline.log import LOG_FOLDER, READ_AHEAD, read_entries
from tallymark.engine.timeline.log_hash import next_hash
from tallymark.engine.views.base import NoBase, ViewBase
from tallymark.engine.views.checkpoint_format import Manifest
from tallymark.engine.views.checkpoint_reader import Checkpoints
from tallymark.engine.views.store import ViewStore
from tallymark.engine.views.view import View


async def view_until(backend: Backend, position: int, log_hash: str, store: ViewStore, *, table: str) -> View:
    """Return the view, in this store: from the newest checkpoint that is not later, or from a later one that covers the
    position, otherwise from the first entry on.

    ``table`` is the table's id. It answers that position. Raises CorruptObject as ``read_until``.
    """
    history, base = await _history(backend, position, log_hash, table)
    view = View(store, base=base, keep_positions=history.head - position)
    view.sync(history)
    return view


async def _history(backend: Backend, position: int, log_hash: str, table: str) -> tuple[History, ViewBase]:
    checkpoints = Checkpoints(backend)
    for name in await checkpoints.pointer() if position else ():
        if (manifest := await checkpoints.read(name)) is None:
            continue
        base = checkpoints.start_at(manifest)
        try:
            if manifest.position <= position:
                return await read_until(backend, position, log_hash, start=manifest.history), base
            if manifest.floor <= position and await _leads_to(backend, position, log_hash, manifest):
                return History(manifest.history), base
        except CorruptObject as error:
            checkpoints.refuse(str(error))  # the log itself shows the cause
    return await read_until(backend, position, log_hash, start=no_history(table)), NoBase()


async def _leads_to(backend: Backend, position: int, log_hash: str, manifest: Manifest) -> bool:
    """Return whether the entries after a position lead from its hash to that of a later checkpoint."""
    found = await read_entries(backend, range(position + 1, manifest.position + 1))
    digest = bytes.fromhex(log_hash)
    for number in sorted(found):
        digest = next_hash(digest, number, found[number])
    return digest == manifest.history.hash


async def read_until(backend: Backend, position: int, log_hash: str, *, start: HistoryBase) -> History:
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
