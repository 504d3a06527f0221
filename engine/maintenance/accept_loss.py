"""Acceptance of lost log entries: what shows them is removed, so that the table continues from the log that is left."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from tallymark.backends.contract import Backend
from tallymark.backends.errors import NotFound
from tallymark.backends.events import EventLog
from tallymark.engine.errors import CorruptObject, LostEntries
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.tasks.file_name import is_file_of
from tallymark.engine.timeline.listing import read_listing
from tallymark.engine.timeline.projection import instant_of_projected
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.views.checkpoint_format import POINTER, encode_pointer, position_of

_events = EventLog(__name__)

ATTEMPTS = 3
"""Kinds of evidence that one call removes: checkpoints, projected instants, and what a writer adds in between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedLoss:
    """Result of ``accept_loss``."""

    position: int
    """Position at which the log ends."""
    instants: tuple[str, ...]
    """Lost commits that the Hudi timeline showed; none where nothing was lost."""
    files: tuple[str, ...]
    """Data files of these commits, which were deleted."""
    missing: tuple[str, ...]
    """Live files of the table that do not exist: the lost commits had replaced them. Scans fail until their partitions
    are overwritten.
    """


async def accept_loss(handle: TableHandle, properties: TableProperties) -> AcceptedLoss:
    """Remove the checkpoints and projected commits that the log does not contain, and the data files of these commits.

    Raises:
        CorruptObject: the log cannot be read without a checkpoint that is among them; restore a copy.
    """
    lost: list[_Lost] = []
    for _ in range(ATTEMPTS):
        try:
            await handle.log.refresh()
            break
        except LostEntries as loss:
            if loss.evidence == (POINTER,):
                await _drop_checkpoints(handle.backend, loss.head)
            else:
                lost += await _drop_projected(handle.backend, loss.evidence)
    history = await handle.log.refresh()
    _events.warning("loss.accepted", url=handle.backend.url, position=history.head, instants=len(lost))
    return AcceptedLoss(
        position=history.head,
        instants=tuple(each.instant for each in lost),
        files=tuple(path for each in lost for path in each.added),
        missing=tuple(await _missing(handle, properties, {replaced for each in lost for replaced in each.replaced})),
    )


async def _missing(handle: TableHandle, properties: TableProperties, replaced: set[tuple[str, str]]) -> list[str]:
    """Return those of these live files, given by partition and file id, that do not exist."""
    view = handle.view(properties)
    missing = []
    for partition in sorted({partition for partition, _ in replaced}):
        stored = {entry.path async for entry in handle.backend.list(partition)}
        live = await view.at(view.head).files(partition)
        missing += [file.path for file in live if (partition, file.file_id) in replaced and file.path not in stored]
    return missing


@dataclass(frozen=True, slots=True)
class _Lost:
    """A lost commit, as the Hudi timeline shows it."""

    instant: str
    added: list[str]
    """Paths of its data files."""
    replaced: list[tuple[str, str]]
    """Partition and file id of the files that it replaced."""


async def _drop_checkpoints(backend: Backend, head: int) -> None:
    """Make the pointer name the newest checkpoint up to the log's end; without one, delete it."""
    listing = await read_listing(backend)
    kept = [name for name in listing.manifests if position_of(name) <= head][:2]
    if not kept and listing.numbers and listing.numbers[0] > 1:
        raise CorruptObject(
            f"the log in storage begins at position {listing.numbers[0]} and ends at {head}, and every checkpoint "
            "is of a later position: the table cannot be read from them; restore .hoodie/.tallymark from a copy"
        )
    if kept:
        await backend.put(POINTER, encode_pointer(kept))
    dropped = [f"{POINTER.rpartition('/')[0]}/{name}" for name in listing.manifests if position_of(name) > head]
    await backend.delete(dropped if kept else [*dropped, POINTER])


async def _drop_projected(backend: Backend, evidence: Sequence[str]) -> list[_Lost]:
    """Delete the data files of these commits, then what shows them."""
    listing = await read_listing(backend)
    found = []
    for path in evidence:
        try:
            lost = _lost(instant_of_projected(path), await backend.get(path))
        except NotFound:
            continue
        await backend.delete(lost.added)
        await backend.delete([path, *listing.timeline.get(lost.instant, ())])
        found.append(lost)
    return found


def _lost(instant: str, data: bytes) -> _Lost:
    """Return what a completed commit names; nothing where its file is damaged."""
    try:
        fields = json.loads(data)
        added = [str(stat["path"]) for stats in fields["partitionToWriteStats"].values() for stat in stats]
        replaced = [
            (str(partition), str(each))
            for partition, ids in fields.get("partitionToReplaceFileIds", {}).items()
            for each in ids
        ]
    except (ValueError, KeyError, TypeError, AttributeError):
        return _Lost(instant, [], [])
    return _Lost(instant, [path for path in added if is_file_of(path, instant)], replaced)
