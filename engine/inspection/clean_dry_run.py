"""Dry runs of a clean and a rollback: they only read, except for a heartbeat as a clock probe."""

from functools import partial

from tallymark.backends.errors import NotPermitted
from tallymark.engine.inspection.status import OpenInstant, not_open, read_open_instants
from tallymark.engine.instants.fencing import read_fences
from tallymark.engine.instants.marked import marked_in_storage
from tallymark.engine.instants.rollback import Ended
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.maintenance.clean import CleanResult, old_fence_lists
from tallymark.engine.maintenance.expire import find_due
from tallymark.engine.maintenance.readers import find_readers
from tallymark.engine.maintenance.store_time import store_time
from tallymark.engine.timeline.properties import TableProperties


async def plan_clean(handle: TableHandle, properties: TableProperties, retain_hours: float | None) -> CleanResult:
    """Return the result that ``clean`` would have, without the fences of rollbacks. Nothing stored is changed.

    Where the age of an object counts, a heartbeat is put and deleted, to read the store's clock, as in ``status``. With
    read access only, the newest log entry's time is used, and files due since then are left out.
    """
    ended = await plan_rollback(handle)
    try:
        due = None if retain_hours is None else await find_due(handle, retain_hours, now=partial(store_time, handle))
        lists = await old_fence_lists(handle, now=partial(store_time, handle))
    except NotPermitted:
        due = None if retain_hours is None else await find_due(handle, retain_hours)
        lists = []
    if due is not None:
        due = due.sparing(await find_readers(handle), handle.log.history)
    fences = [fence for path in lists for fence in await read_fences(handle.backend, path)]
    return CleanResult.of(ended, len(fences), due, horizon=handle.log.history.horizon, is_dry_run=True)


async def plan_rollback(handle: TableHandle, instant: str | None = None) -> tuple[Ended, ...]:
    """Return what a rollback of the named instant, or of those of dead writers, would return, without its fences."""
    found = await read_open_instants(handle)
    if instant is None:
        return tuple([await _would_end(handle, each) for each in found if each.writer == "dead"])
    named = [each for each in found if each.reservation.instant == instant]
    if not named:
        raise not_open(instant)
    return (await _would_end(handle, named[0]),)


async def _would_end(handle: TableHandle, found: OpenInstant) -> Ended:
    instant = found.reservation.instant
    match found.decision:
        case "commit":
            return Ended(instant=instant, outcome="was committed", marked=0, fences=0)
        case "clean":
            return Ended(instant=instant, outcome="was cleaned", marked=0, fences=0)
        case _:
            marked = 0
            if not found.decision:
                marked = len((await marked_in_storage(handle, found.reservation, is_sealed=False)).paths)
            return Ended(instant=instant, outcome="rolled back", marked=marked, fences=0)
