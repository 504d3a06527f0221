"""Which files a write is to leave: planned in one way for a job that runs, and for one that is only thought of."""

from dataclasses import replace

from tallymark.engine.settings import SizingSettings
from tallymark.engine.sizing.plan import SizingPlan
from tallymark.engine.sizing.planning import plan
from tallymark.engine.sizing.profile import WorkloadProfile
from tallymark.engine.timeline.history import History
from tallymark.engine.writes.claims import claimed_by_others
from tallymark.engine.writes.fills import commit_sizes
from tallymark.engine.writes.handle import TableHandle


async def sized(
    handle: TableHandle,
    history: History,
    profile: WorkloadProfile,
    settings: SizingSettings,
    *,
    is_overwrite: bool,
    instant: str | None = None,
) -> SizingPlan:
    """The plan by the files that are live in this history, and by what other open instants are filling.

    Puts nothing. With sizing off nothing is planned; an overwrite fills nothing, since what it replaces goes anyway.
    ``instant`` is the write's own, if it has one yet.
    """
    if not settings.is_on:
        return SizingPlan(files=())
    known = replace(profile, commits=commit_sizes(history))
    if is_overwrite:
        return plan(known, (), settings)
    limit = handle.commit_settings.concurrency
    taken = await claimed_by_others(handle.backend, instant, concurrency=limit)
    return plan(replace(known, taken=known.taken | taken), history.files, settings)
