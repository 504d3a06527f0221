"""View of a log up to a position that is known to exist, for a caller that knows only that position and its hash.

Nothing is listed. A listing would not help: it shows which files exist, but not which are committed, nor at which
position.
"""

from tallymark.backends.contract import Backend
from tallymark.engine.errors import CorruptObject
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.log_part import read_until
from tallymark.engine.views.base import NoBase, ViewBase
from tallymark.engine.views.checkpoint_format import position_of
from tallymark.engine.views.checkpoint_reader import Checkpoints
from tallymark.engine.views.store import ViewStore
from tallymark.engine.views.view import View


async def view_until(backend: Backend, position: int, log_hash: str, store: ViewStore) -> View:
    """Return the view, in this store: from the newest checkpoint that is not later, otherwise from the first entry on.

    It answers that position and no other. Raises CorruptObject as ``read_until``.
    """
    history, base = await _history(backend, position, log_hash)
    view = View(store, base=base, keep_positions=0)
    view.sync(history)
    return view


async def _history(backend: Backend, position: int, log_hash: str) -> tuple[History, ViewBase]:
    checkpoints = Checkpoints(backend)
    for name in await checkpoints.pointer() if position else ():
        if position_of(name) > position or (manifest := await checkpoints.read(name)) is None:
            continue
        base = checkpoints.start_at(manifest)
        try:
            return await read_until(backend, position, log_hash, start=manifest.history), base
        except CorruptObject as error:
            checkpoints.refuse(str(error))  # the log itself shows the cause
    return await read_until(backend, position, log_hash), NoBase()
