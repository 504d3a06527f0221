"""The log and the Hudi timeline are archived: nothing goes that is needed, and everything in its order."""

from dataclasses import replace

from tallymark.engine.instants.open_instants import open_reservations
from tallymark.engine.maintenance import archive
from tallymark.engine.timeline.log import entry_path
from tests.simulation.mutations import where
from tests.simulation.mutations.mutation import Group

ARCHIVE = Group("Archiving")

_delete = archive.delete_archived


def _as_it_was(log):
    async def refresh(*, verify=False):
        del log.refresh
        return log.history

    return refresh


@ARCHIVE.function(archive.delete_archived, where.has_checkpoints)
async def _newest_first(handle, bounds):
    """Log entries are archived from the newest on. So a writer that slept takes the number of an archived entry as its
    own.
    """
    for number in range(bounds.start, 0, -1):
        await handle.backend.delete([entry_path(number)])
    await _delete(handle, bounds)


@ARCHIVE.member(archive, "open_reservations", where.has_checkpoints)
async def _none_open(handle):
    """An archive does not look for open instants. So their files count as committed for readers of the Hudi format, and
    their entries as void.
    """
    return []


@ARCHIVE.member(archive, "open_reservations", where.has_checkpoints)
async def _listed_after_the_log(handle):
    """An archive does not read the log after it has looked for open instants. So an instant that is committed in
    between is treated as over before its entry.
    """
    found = await open_reservations(handle)
    handle.log.refresh = _as_it_was(handle.log)
    return found


@ARCHIVE.function(archive.delete_archived, where.has_checkpoints)
async def _whole_timeline(handle, bounds):
    """All commits but the last leave the Hudi timeline. So files of open instants count as committed, and replaced ones
    as live.
    """
    await _delete(handle, replace(bounds, timeline_floor="9" * 17))


@ARCHIVE.function(archive._delete_timeline, where.has_checkpoints)
async def _backwards(handle, listing, instants):
    """Instants leave the Hudi timeline from the newest on. So its readers miss committed files until it is done."""
    for instant in sorted(instants, reverse=True):
        await handle.backend.delete(sorted(listing.timeline[instant]))
