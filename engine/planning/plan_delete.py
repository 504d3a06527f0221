"""Dry run of a delete by predicate: it looks rows up as the delete does, and writes nothing."""

from dataclasses import dataclass

from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.jobs.delete import count_matches
from tallymark.engine.jobs.request import WriteRequest
from tallymark.engine.jobs.rerun import ticket_of
from tallymark.engine.jobs.selected import SelectedChanges
from tallymark.engine.jobs.target import WriteTarget
from tallymark.engine.settings import TaskSettings
from tallymark.engine.sizing.profile import FileUpdates
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.timeline.properties import TableProperties


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePlan:
    """What ``Table.delete`` would do."""

    where: str
    """The predicate in its canonical form."""
    position: int
    """The position of the log at which the rows were looked up."""
    removed: tuple[DataFile, ...]
    """Files all of whose rows match: they are removed without being rewritten."""
    rewritten: tuple[FileUpdates, ...]
    """Files of which some rows match, with the number of these."""
    looked_up_files: int
    """Files whose columns were read to find that out."""
    looked_up_bytes: int

    @property
    def deleted(self) -> int:
        """Rows to delete."""
        return sum(file.rows for file in self.removed) + sum(found.rows for found in self.rewritten)

    @property
    def removed_bytes(self) -> int:
        return sum(file.bytes for file in self.removed)

    @property
    def rewritten_bytes(self) -> int:
        """Size of the files to rewrite, their deleted rows included."""
        return sum(found.file.bytes for found in self.rewritten)


async def plan_delete(
    handle: TableHandle, properties: TableProperties, request: WriteRequest, *, concurrency: int
) -> DeletePlan:
    """Return the plan of a request with ``where``. Raises InvalidRequest and ConflictError as the delete does."""
    target = WriteTarget.of(request, properties)
    ticket = ticket_of(handle, properties, request, instant="dry-run", base=0, tasks=TaskSettings())
    changes = SelectedChanges(handle, properties, ticket, target)
    lookups = await changes.look_up()
    hits = await count_matches(ticket, lookups, handle.backend, concurrency=concurrency)
    found = changes.profile(hits)
    files = [file for lookup in lookups for file in lookup.files]
    return DeletePlan(
        where=str(target.predicate),
        position=changes.position,
        removed=changes.removed,
        rewritten=found.updates,
        looked_up_files=len(files),
        looked_up_bytes=sum(file.bytes for file in files),
    )
