"""Deletion of checkpoint objects that no checkpoint names, left by writers that died or lost the pointer."""

from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.views.checkpoint_format import CHECKPOINT_FOLDER, put_for


async def drop_strays(handle: TableHandle) -> None:
    """Delete objects that were put for a position before the newest checkpoint's, and are not part of the newest two.

    No process will make a checkpoint of them: a writer of such a position reads the pointer again before
    putting its own, finds another, and gives up. What was put for its own position may be about to take the place of a
    damaged one, and waits until a checkpoint has passed it, as does what was put for a later one. While the newest one
    cannot be read everything stays, since its parts are unknown.
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
