"""Delete what belongs to no checkpoint: of writers that died, gave up, or lost a pointer that another one put too."""

from tallymark.backends.contract import Entry
from tallymark.engine.views.checkpoint import POINTER
from tallymark.engine.writes.handle import TableHandle


async def drop_strays(handle: TableHandle, old: list[Entry]) -> None:
    """Of what has lain in ``CHECKPOINT_FOLDER`` for longer than any writer takes, what the pointer does not lead to.

    A writer uses parts again that the newest manifest names; so these stay, and whatever it has put itself is young.
    """
    if not old:
        return
    named = {POINTER}
    for name in await handle.checkpoints.pointer():
        if (manifest := await handle.checkpoints.read(name)) is not None:
            named |= manifest.paths
    await handle.backend.delete([entry.path for entry in old if entry.path not in named])
