"""Lookup or creation of the table of a job. A refused call changes nothing."""

from contextlib import suppress

import pyarrow as pa

from tallymark.backends.concurrently import at_once, concurrently
from tallymark.backends.contract import Backend
from tallymark.backends.errors import AlreadyExists, BackendError, NotFound
from tallymark.backends.events import EventLog
from tallymark.engine.errors import InvalidRequest, UnsupportedTable
from tallymark.engine.instants.project import put_projected
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.jobs.base import check_base
from tallymark.engine.jobs.table_spec import TableSpec
from tallymark.engine.maintenance.recovery import PROBE
from tallymark.engine.timeline.log import new_nonce
from tallymark.engine.timeline.projection import floor_files
from tallymark.engine.timeline.properties import PROPERTIES, TableProperties
from tallymark.engine.timeline.reservation import HEARTBEAT_FOLDER

METADATA_TABLE = ".hoodie/metadata"
"""Path of a Hudi metadata table. Like every Hudi table it has properties, which are put first."""

_events = EventLog(__name__)


async def read_properties(backend: Backend) -> TableProperties | None:
    """Return the properties of the table at the backend's root; None where nothing is stored.

    Raises:
        UnsupportedTable: the root contains something else, or a table of a kind that this library does not write.
    """
    found = await _read_stored(backend)
    return None if found is None else found[0]


async def _read_stored(backend: Backend) -> tuple[TableProperties, bytes] | None:
    """Return the same, with the bytes that are stored."""
    data, metadata_table = await _read(backend, PROPERTIES, f"{METADATA_TABLE}/{PROPERTIES}")
    if data is None:
        # Listings are read to their end: one that is left half way complains when it is collected.
        found = [entry.path async for entry in backend.list("") if not is_trial(entry.path)]
        if not found:
            return None
        [data] = await _read(backend, PROPERTIES)  # another writer may have created the table since
        if data is None:
            raise UnsupportedTable(
                f"{backend.url} holds no table, and is not empty (there is {found[0]}, and no "
                f"{PROPERTIES}); give an empty or new location, or restore that file from a copy"
            )
    properties = TableProperties.decode(data)
    if metadata_table is not None:
        raise UnsupportedTable(
            f"{backend.url} has a Hudi metadata table ({METADATA_TABLE}), which this library does not keep up to date; "
            "turn it off with the engine that made it and delete it first"
        )
    return properties, data


async def _read(backend: Backend, *paths: str) -> list[bytes | None]:
    """Return the objects, which are read at once; None for one that does not exist."""
    found: dict[str, bytes] = {}

    async def read(path: str) -> None:
        with suppress(NotFound):
            found[path] = await backend.get(path)

    await concurrently(read, paths, limit=len(paths))
    return [found.get(path) for path in paths]


async def prepare_table(handle: TableHandle, wanted: TableSpec) -> TableProperties:
    """Return the properties of the table to write, which is created as specified if nothing is stored.

    Those that the handle's memory has are not read again: they are checked while an instant is reserved.

    Raises:
        InvalidRequest: the table has other columns, types or partition columns, retains replaced files differently, or
            does not fit the request.
        UnsupportedTable: as ``read_properties``, or the store ignores put-if-absent.
    """
    found = await find_table(handle, wanted)
    if found is None:
        handle.memory.properties = await _create(handle, wanted.beside(None))
        found = handle.memory.properties[0]
        _check_fits(found, wanted.beside(found), wanted)  # another writer may have created it otherwise since
        handle.log.identify(found.id, found.writer_features)
    return found


async def find_table(handle: TableHandle, wanted: TableSpec) -> TableProperties | None:
    """Return the properties of the table to write; None where nothing is stored, and it would be created. Changes
    nothing.

    Raises:
        InvalidRequest: as ``prepare_table``.
        UnsupportedTable: as ``read_properties``.
    """
    if handle.memory.properties is None:
        handle.memory.properties = await _read_stored(handle.backend)
    found = None if handle.memory.properties is None else handle.memory.properties[0]
    if found is not None:
        handle.log.identify(found.id, found.writer_features)
    mine = wanted.beside(found)
    await check_base(handle, wanted.request)
    if found is not None:
        _check_fits(found, mine, wanted)
    return found


def _check_fits(found: TableProperties, mine: TableProperties, wanted: TableSpec) -> None:
    wanted.retention.check_kept(found)
    wanted.request.key.check_kept(found.key)
    if wanted.request.is_keyed and found.key is None:
        raise InvalidRequest(
            f"mode={wanted.request.mode!r}: the table was created without a record key, by which rows could be found; "
            "delete rows by where=..., overwrite partitions, or write a new table with record_key=..."
        )
    _check_same(found, mine, may_lack=wanted.request.is_keyed and wanted.request.mode == "delete")


async def _create(handle: TableHandle, wanted: TableProperties) -> tuple[TableProperties, bytes]:
    trial = await check_exclusive(handle.backend)
    if not await _is_created(handle.backend, wanted, trial):
        theirs = await _read_stored(handle.backend)
        assert theirs is not None
        return theirs
    for file in floor_files(wanted):
        await put_projected(handle, file)
    partition_by = ",".join(wanted.partition_by) or None
    _events.info("table.created", url=handle.backend.url, partition_by=partition_by)
    return wanted, wanted.encode()


async def _is_created(backend: Backend, wanted: TableProperties, trial: str) -> bool:
    """Create the table, and delete the trial object of this store at the same time. Return False if the table
    exists.
    """
    is_theirs = False

    async def create() -> None:
        nonlocal is_theirs
        try:
            await backend.put_new(PROPERTIES, wanted.encode())
        except AlreadyExists:
            is_theirs = True

    async def drop() -> None:
        await clear(backend, trial)

    await at_once(create, drop)
    return not is_theirs


def _check_same(properties: TableProperties, wanted: TableProperties, *, may_lack: bool) -> None:
    """Compare the columns. With ``may_lack`` the key's are enough, and those of partitions where it is unique there."""
    if wanted.partition_by and wanted.partition_by != properties.partition_by:
        raise InvalidRequest(
            f"partition_by={list(wanted.partition_by)}: the table is partitioned by {list(properties.partition_by)}; "
            "leave partition_by out, or write a new table"
        )
    theirs = {field.name: field.type for field in properties.schema}
    mine = {field.name: field.type for field in wanted.schema}
    needed = _needed_to_delete(properties) if may_lack else theirs
    if absent := [name for name in needed if name not in mine]:
        raise InvalidRequest(
            f"column {absent[0]!r} of the table ({theirs[absent[0]]}) is missing; add it"
            + ("" if may_lack else ", null if need be")
        )
    if extra := [name for name in mine if name not in theirs]:
        raise InvalidRequest(
            f"column {extra[0]!r} ({mine[extra[0]]}) is not in the table; drop it, or write a new table"
        )
    for name, type_ in mine.items():
        if not _same_values(type_, theirs[name]):
            raise InvalidRequest(f"column {name!r} is {type_}, the table has {theirs[name]}; cast it")


def _needed_to_delete(properties: TableProperties) -> tuple[str, ...]:
    assert properties.key is not None, "it was checked"
    partition_by = properties.partition_by if properties.key.unique_in == "partition" else ()
    return (*properties.key.record_key, *partition_by)


def _same_values(mine: pa.DataType, theirs: pa.DataType) -> bool:
    """Return whether the types are equal but for nullability and time zone labels: nulls are checked when rows are
    written.
    """
    return _bare(mine).equals(_bare(theirs))


def _bare(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(child.name, _bare(child.type)) for child in type_.fields])
    if pa.types.is_map(type_):
        return pa.map_(_bare(type_.key_type), _bare(type_.item_type))
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        return pa.list_(_bare(type_.value_type))
    if pa.types.is_timestamp(type_) and type_.tz is not None:
        return pa.timestamp(type_.unit, "UTC")
    return type_


TRIALS = 2
"""Names that are tried before the store is blamed. If a writer pauses for longer than a lease between its two puts,
another writer may have deleted the first object.
"""


async def check_exclusive(backend: Backend) -> str:
    """Put a new name twice concurrently and check that one put is refused. Return the name, to be deleted by ``clear``.

    The name is that of a heartbeat without a writer: if this process dies, writers of the table delete it after a
    lease, and ``is_trial`` distinguishes it from other objects before there is a table.

    Raises:
        UnsupportedTable: the store ignores put-if-absent. Nothing is left.
    """
    for _ in range(TRIALS):
        path = f"{HEARTBEAT_FOLDER}/{PROBE}{new_nonce()}"
        if await _is_refused_once(backend, path):
            return path
        await clear(backend, path)
    raise UnsupportedTable(
        f"{backend.url}: of two writers who created one object at once, both got an acknowledgement. It ignores "
        "put-if-absent (If-None-Match on S3), by which commits are decided: writers would undo each other. Keep tables "
        f"elsewhere, or update the server; 'tallymark doctor {backend.url}' has details"
    )


async def clear(backend: Backend, path: str) -> None:
    """Delete the name. If that fails, a later clean deletes it."""
    with suppress(BackendError):
        await backend.delete([path])


def is_trial(path: str) -> bool:
    """Return whether the path is that of a trial whose process died."""
    return path.startswith(f"{HEARTBEAT_FOLDER}/{PROBE}")


async def _is_refused_once(backend: Backend, path: str) -> bool:
    """Return whether one of two concurrent puts was refused. If none was, raises storage's error, if there was one."""
    refused = []

    async def create(data: bytes) -> None:
        try:
            await backend.put_new(path, data)
        except AlreadyExists:
            refused.append(data)

    try:
        await concurrently(create, (b"1", b"2"), limit=2)
    except BackendError:
        if not refused:
            raise
    return bool(refused)
