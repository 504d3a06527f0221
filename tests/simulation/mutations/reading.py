"""Readers under leases, and the cleans that are to heed them."""

from tallymark.engine.inspection import leased_snapshot
from tallymark.engine.maintenance import readers
from tests.simulation.mutations import where
from tests.simulation.mutations.mutation import Mutation, nothing, replaced

_find_readers = readers.find_readers
_held = leased_snapshot._held


async def _nobody_reads(handle):
    return readers.Readers(living=(), dead=())


async def _early_head(handle, properties, lease, position, as_of):
    """The position is the head that was read before the lease was there."""
    return position if as_of is None else await _held(handle, properties, lease, position, as_of)


async def _asked_once(handle):
    """What was found at the first look, before the instant of a clean was reserved, is gone by."""
    if not hasattr(handle.log, "_readers_found"):
        handle.log._readers_found = await _find_readers(handle)
    return handle.log._readers_found


MUTATIONS = (
    Mutation(
        name="a clean ignores readers' leases",
        where=(where.has_lease,),
        by=("readers_under_leases_find_their_files",),
        breaks="files are deleted that a reader is reading",
        fault=lambda: replaced(readers.find_readers, _nobody_reads),
    ),
    Mutation(
        name="a reader reads the log before it puts its lease",
        where=(where.has_lease_at_head,),
        by=("readers_under_leases_find_their_files",),
        breaks="what is replaced and cleaned in between is missing from its snapshot",
        fault=lambda: replaced(leased_snapshot._held, _early_head),
    ),
    Mutation(
        name="a reader of an older position does not check for open cleans",
        where=(where.has_lease,),
        by=("readers_under_leases_find_their_files",),
        breaks="a clean that had listed leases before expires files of that position",
        fault=lambda: replaced(leased_snapshot._until_cleans_are_decided, nothing),
    ),
    Mutation(
        name="a clean lists leases before it reserves its instant, and not after",
        where=(where.has_lease,),
        by=("readers_under_leases_find_their_files",),
        breaks="a reader of an older position puts its lease in between, and sees no clean",
        fault=lambda: replaced(readers.find_readers, _asked_once),
    ),
)
