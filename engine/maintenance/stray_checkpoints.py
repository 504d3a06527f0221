"""Deletion of checkpoint objects that no checkpoint names, left by writers that died or lost the race for the
pointer.
"""

from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.views.checkpoint_format import CHECKPOINT_FOLDER, put_for


async def drop_strays(handle: TableHandle) -> None:
    """Delete objects that were put for a position before the newest checkpoint's, and are not part of the newest two.

    No process will make a checkpoint of them: a writer of such a position reads the pointer again before it puts its
    own, finds another, and gives up. Objects put for the newest checkpoint's own position may be about to replace a
    damaged one, and remain until a checkpoint has passed it, as do those for a later position. While the newest
    checkpoint cannot be read everything remains, since its parts are unknown.
    """
    found = [entry.path async for entry in handle.backend.list(CHECKPOINT_FOLDER)]
    if not found:
        return
    names = await handle.checkpoints.pointer()
    manifests = [await handle.checkpoints.read(name) for name in names]
    newest = manifests[0] if manifests else None
    if newest is None:
        return
    named = {path for manifest in manifests if manifest is not None for path in manifest.paths}
    passed = [path for path in found if (position := put_for(path)) is not None and position < newest.position]
    await handle.backend.delete([path for path in passed if path not in named])
