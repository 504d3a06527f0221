"""Projector of the commit log, which writes the missing Hudi timeline files in the log's order."""

from collections.abc import Collection, Sequence
from itertools import chain

from tallymark.backends.concurrently import concurrently
from tallymark.backends.contract import exists
from tallymark.backends.errors import AlreadyExists
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.timeline.entry import LogEntry
from tallymark.engine.timeline.projection import ProjectedFile, completed_path, floor_files, projected_files
from tallymark.engine.timeline.properties import TableProperties

BATCH_COUNT = 32
"""Entries whose files are put at once, but for those that complete them."""


async def project(
    handle: TableHandle, properties: TableProperties, position: int, *, own: Collection[str] = ()
) -> None:
    """Make every entry up to the position visible to readers of the Hudi format, and later ones that were read.

    The bytes are a function of the entries, so any number of writers may do this concurrently. ``own`` are instants
    that only this process can have projected yet, and whose reservations are there: if one of them is the only commit
    left, its files are put at once, in no order, and the next writer finds its reservation and puts them again.
    """
    memory = handle.memory
    async with memory.projecting:
        history = handle.log.history
        memory.projected = max(memory.projected, history.base)  # a checkpoint is put after the projection before it
        if memory.projected >= position:
            return
        head, numbers = history.head, history.commits_after(memory.projected)
        commits = [(number, history.members_at(number)) for number in numbers]
        first = await _first_missing(handle, commits, own)
        if first == 0 and memory.projected == 0:
            for file in floor_files(properties):
                await put_projected(handle, file)
        at_once = len(commits) - first == 1 and all(member.instant in own for member in commits[first][1])
        for start in range(first, len(commits), BATCH_COUNT):
            await _put_batch(handle, properties, commits[start : start + BATCH_COUNT], at_once=at_once)
        memory.projected = max(memory.projected, head)


async def project_again(handle: TableHandle, properties: TableProperties, entry: LogEntry) -> None:
    """Put the timeline files of a projected commit again: its writer, which puts them at once, may not have put all."""
    await _put_all(handle, projected_files(entry, properties, new_partitions=()))


async def _first_missing(
    handle: TableHandle, commits: Sequence[tuple[int, tuple[LogEntry, ...]]], own: Collection[str]
) -> int:
    """Return the index of the first of these entries that may not be projected whole."""
    first = newest = len(commits)
    while newest and any(member.instant in own for member in commits[newest - 1][1]):
        newest -= 1
    first = newest
    while first and not await _is_complete(handle, commits[first - 1]):
        first -= 1
    return first


async def _is_complete(handle: TableHandle, commit: tuple[int, tuple[LogEntry, ...]]) -> bool:
    return await exists(handle.backend, completed_path(commit[1][-1]))


async def _put_batch(
    handle: TableHandle,
    properties: TableProperties,
    commits: Sequence[tuple[int, tuple[LogEntry, ...]]],
    *,
    at_once: bool,
) -> None:
    """Put the files of these entries. Those that complete them are put in the order of the log, and of a group that of
    the last member last: where it is there, everything before it is.

    With ``at_once``, for a single entry, only the metadata of new partitions is put before the rest: without it Hudi
    does not read what is in them.
    """
    history = handle.log.history
    described: list[ProjectedFile] = []
    pending: list[ProjectedFile] = []
    completing: list[list[ProjectedFile]] = []
    for number, members in commits:
        new_partitions = history.new_partitions(number)
        completed: list[ProjectedFile] = []
        for member in members:
            new = [partition for partition, instant in new_partitions.items() if instant == member.instant]
            *metadata, requested, inflight, last = projected_files(member, properties, new_partitions=new)
            described += metadata
            pending += [requested, inflight]
            completed.append(last)
        completing += [completed[:-1], completed[-1:]]
    if at_once:
        completing, pending = [[*pending, *chain.from_iterable(completing)]], []
    for files in (described + pending, *completing):
        await _put_all(handle, files)


async def _put_all(handle: TableHandle, files: Sequence[ProjectedFile]) -> None:
    await concurrently(lambda file: put_projected(handle, file), files, limit=handle.commit_settings.concurrency)


async def put_projected(handle: TableHandle, file: ProjectedFile) -> None:
    """Put a file that every writer would write with the same bytes."""
    try:
        await handle.backend.put_new(file.path, file.data)
    except AlreadyExists:
        return
