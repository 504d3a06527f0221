"""Projector of the commit log, which writes the missing Hudi timeline files in the log's order."""

from tallymark.backends.concurrently import concurrently
from tallymark.backends.contract import exists
from tallymark.backends.errors import AlreadyExists
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.timeline.projection import ProjectedFile, completed_path, floor_files, projected_files
from tallymark.engine.timeline.properties import TableProperties


async def project(handle: TableHandle, properties: TableProperties, position: int) -> None:
    """Make every entry up to the position visible to readers of the Hudi format, none before an older one.

    The bytes are a function of the entries, so any number of writers may do this concurrently.
    """
    history = handle.log.history
    handle.projected = max(handle.projected, history.base)  # a checkpoint is put after the projection of its position
    commits = [(number, entry) for number, entry in history.after(handle.projected) if number <= position]
    commits = [(number, entry) for number, entry in commits if entry.kind == "commit"]
    first = len(commits)
    while first and not await exists(handle.backend, completed_path(commits[first - 1][1])):
        first -= 1
    if first == 0 and handle.projected == 0:
        for file in floor_files(properties):
            await put_projected(handle, file)
    for number, entry in commits[first:]:
        files = projected_files(entry, properties, new_partitions=history.new_partitions(number))
        *earlier, completed = files
        await concurrently(lambda file: put_projected(handle, file), earlier, limit=handle.commit_settings.concurrency)
        await put_projected(handle, completed)
    handle.projected = max(handle.projected, position)


async def put_projected(handle: TableHandle, file: ProjectedFile) -> None:
    """Put a file that every writer would write with the same bytes."""
    try:
        await handle.backend.put_new(file.path, file.data)
    except AlreadyExists:
        return
