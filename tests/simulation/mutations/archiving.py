"""The log and the Hudi timeline are archived: nothing goes that is needed, and everything in its order."""

from dataclasses import replace
from unittest import mock

from tallymark.engine.instants.open_instants import open_reservations
from tallymark.engine.maintenance import archive
from tallymark.engine.timeline.log import entry_path
from tests.simulation.mutations import where
from tests.simulation.mutations.mutation import Mutation, replaced

_delete = archive.delete_archived


async def _newest_first(handle, bounds):
    for number in range(bounds.start, 0, -1):
        await handle.backend.delete([entry_path(number)])
    await _delete(handle, bounds)


async def _none_open(handle):
    return []


async def _listed_after_the_log(handle):
    """The log is not read again after the open instants were listed."""
    found = await open_reservations(handle)
    handle.log.refresh = _as_it_was(handle.log)
    return found


def _as_it_was(log):
    async def refresh(*, verify=False):
        del log.refresh
        return log.history

    return refresh


async def _whole_timeline(handle, bounds):
    await _delete(handle, replace(bounds, timeline_floor="9" * 17))


async def _backwards(handle, listing, instants):
    for instant in sorted(instants, reverse=True):
        await handle.backend.delete(sorted(listing.timeline[instant]))


ARCHIVE = (
    Mutation(
        name="log entries are archived from the newest on",
        where=(where.has_checkpoints,),
        breaks="a writer that slept takes the number of an archived entry as its own",
        fault=lambda: replaced(archive.delete_archived, _newest_first),
    ),
    Mutation(
        name="an archive does not look for open instants",
        where=(where.has_checkpoints,),
        breaks="their files count as committed for readers of the Hudi format, and their entries as void",
        fault=lambda: mock.patch.object(archive, "open_reservations", _none_open),
    ),
    Mutation(
        name="an archive does not read the log after it has looked for open instants",
        where=(where.has_checkpoints,),
        breaks="an instant that is committed in between is treated as over before its entry",
        fault=lambda: mock.patch.object(archive, "open_reservations", _listed_after_the_log),
    ),
    Mutation(
        name="all commits but the last leave the Hudi timeline",
        where=(where.has_checkpoints,),
        breaks="files of open instants count as committed, and replaced ones as live",
        fault=lambda: replaced(archive.delete_archived, _whole_timeline),
    ),
    Mutation(
        name="instants leave the Hudi timeline from the newest on",
        where=(where.has_checkpoints,),
        breaks="its readers miss committed files until it is done",
        fault=lambda: replaced(archive._delete_timeline, _backwards),
    ),
)
