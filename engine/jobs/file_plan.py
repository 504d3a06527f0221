"""Sizing plan of a write, computed alike for a running job and for a dry run."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.jobs.fill_claims import claimed_by_others
from tallymark.engine.jobs.fills import commit_sizes
from tallymark.engine.settings import SizingSettings
from tallymark.engine.sizing.plan import SizingPlan
from tallymark.engine.sizing.planning import plan
from tallymark.engine.sizing.profile import WorkloadProfile
from tallymark.engine.sizing.rates import PARTITIONS_COMPARED
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.views.view import ViewAt


async def sized(
    handle: TableHandle,
    files: Sequence[DataFile],
    profile: WorkloadProfile,
    settings: SizingSettings,
    *,
    is_overwrite: bool,
    instant: str | None = None,
) -> SizingPlan:
    """Return the plan, based on these files, which ``reference_files`` has found at the head, and on the small files
    that other open instants fill.

    Puts nothing, and is called only with sizing on. An overwrite fills nothing, since it replaces those files, but it
    learns the size of rows from them. ``instant`` is the write's own, if it has one yet.
    """
    if is_overwrite:
        taken = frozenset(file.path for file in files)
    else:
        taken = await claimed_by_others(handle, instant)
    known = replace(profile, commits=commit_sizes(handle.log.history), taken=profile.taken | taken)
    return plan(known, files, settings)


async def reference_files(at: ViewAt, incoming: Iterable[str]) -> tuple[DataFile, ...]:
    """Return the files that a plan is based on, sorted by path: those of the partitions that get rows, and the newest
    ones.

    Only these partitions are read.
    """
    return await at.files_of({*incoming, *at.newest_partitions(PARTITIONS_COMPARED)})
