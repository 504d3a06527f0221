"""Rows of one partition, packed into one sequence of bytes, in memory, on disk and on the wire alike. Sans-I/O.

A row is a head of fixed size, little-endian, and the file's name in UTF-8:

    rows, bytes, plain bytes, rewritten bytes   4 x 8 bytes
    added at, removed at                        2 x 4 bytes
    length of what follows                      2 bytes

Where the file has bounds, its name is followed by a zero byte and the bounds, as msgpack. A name of this library takes
about 70 bytes, and so a file about 114, or 155 with the range of a key. The partition is not part of it: the owner of a
block knows its partition.

Rows are in the order in which they were added. Only the position of a row's removal is ever changed.
"""

import struct
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields

import msgpack

from tallymark.engine.errors import CorruptObject
from tallymark.engine.packed import unpack
from tallymark.engine.timeline.entry import Bounds, DataFile
from tallymark.engine.views.row import FileRow

_HEAD = struct.Struct("<QQQQIIH")
_REMOVED_AT = struct.Struct("<I")
_LENGTH = struct.Struct("<H")
_POSITIONS = struct.Struct("<IIH")
_POSITIONS_OFFSET = _HEAD.size - _POSITIONS.size
_REMOVED_AT_OFFSET = _HEAD.size - _LENGTH.size - _REMOVED_AT.size
HEAD_BYTES = _HEAD.size
POSITION_MAX = (1 << 32) - 1
NAME_BYTES_MAX = (1 << 16) - 1

SOUGHT_MAX = 8
"""Up to this many names are searched in a block one by one; for more, all rows are read once, which takes as long as
about eight searches.
"""

_END = b"\0"
"""End of a name that bounds follow: no path contains it."""

_CUT_OFF = "a name is cut off"

_set_partition, _set_name, _set_rows, _set_bytes, _set_plain_bytes, _set_rewritten_bytes, _set_bounds = (
    getattr(DataFile, field.name).__set__ for field in fields(DataFile)
)
"""Setters that bypass the constructor of a frozen class, which takes half the time of reading a partition: tasks read
one per lookup.
"""


def pack_row(row: FileRow) -> bytes:
    file = row.file
    tail = file.name.encode("utf-8")
    if file.bounds:
        tail += _END + msgpack.packb([bounds.fields() for bounds in file.bounds])
    return (
        _HEAD.pack(
            file.rows, file.bytes, file.plain_bytes, file.rewritten_bytes, row.added_at, row.removed_at, len(tail)
        )
        + tail
    )


def pack_rows(rows: Iterable[FileRow]) -> bytes:
    return b"".join(map(pack_row, rows))


def unpack_rows(block: bytes | bytearray | memoryview, partition: str) -> Iterator[FileRow]:
    """Yield the rows of a block of this partition.

    Raises CorruptObject where the block ends within a row, or contains invalid text.
    """
    return (FileRow(file, added_at, removed_at) for file, added_at, removed_at in _unpacked(block, partition))


def unpack_live(block: bytes | bytearray | memoryview, partition: str, position: int) -> list[DataFile]:
    """Return the files that were live at a position, in the order of their rows.

    Raises CorruptObject, as ``unpack_rows``.
    """
    files, at, end = list[DataFile](), 0, len(block)
    unpack, head, new = _HEAD.unpack_from, _HEAD.size, object.__new__
    block = bytes(block)
    try:
        while at < end:
            rows, size, plain, rewritten, added_at, removed_at, length = unpack(block, at)
            start = at + head
            at = start + length
            if at > end:
                raise ValueError(_CUT_OFF)
            if added_at <= position and not 0 < removed_at <= position:
                file = new(DataFile)
                name, bounds = _tail(block[start:at])
                _set_partition(file, partition)
                _set_name(file, name)
                _set_rows(file, rows)
                _set_bytes(file, size)
                _set_plain_bytes(file, plain)
                _set_rewritten_bytes(file, rewritten)
                _set_bounds(file, bounds)
                files.append(file)
    except (struct.error, ValueError, TypeError) as error:
        raise _damaged(partition, error) from error
    return files


@dataclass(frozen=True, slots=True)
class LiveSizes:
    """Sums of the files of a partition."""

    sizes: "array[int]"
    """Bytes of each file, ascending."""
    rows: int
    rewritten_bytes: int


def sum_live(block: bytes | bytearray | memoryview, partition: str, position: int) -> LiveSizes:
    """Return the sizes of the files that were live at a position: of the rows only the heads are read.

    Raises CorruptObject, as ``unpack_rows``.
    """
    sizes, all_rows, all_rewritten = array("q"), 0, 0
    at, end, unpack, head = 0, len(block), _HEAD.unpack_from, _HEAD.size
    try:
        while at < end:
            rows, size, _, rewritten, added_at, removed_at, length = unpack(block, at)
            at += head + length
            if at > end:
                raise ValueError(_CUT_OFF)
            if added_at <= position and not 0 < removed_at <= position:
                sizes.append(size)
                all_rows += rows
                all_rewritten += rewritten
    except (struct.error, ValueError) as error:
        raise _damaged(partition, error) from error
    return LiveSizes(array("q", sorted(sizes)), all_rows, all_rewritten)


def find_live(block: bytes, partition: str, file_id: str, position: int) -> DataFile | None:
    """Return the file of this id if it was live at a position; of the other rows only the heads are read.

    Raises CorruptObject, as ``unpack_rows``.
    """
    wanted = file_id.encode("utf-8", "surrogatepass")
    at, end = 0, len(block)
    try:
        while at < end:
            added_at, removed_at, length = _POSITIONS.unpack_from(block, at + _POSITIONS_OFFSET)
            start, at = at, at + _HEAD.size + length
            if at > end:
                raise ValueError(_CUT_OFF)
            if block.startswith(wanted, start + _HEAD.size, at) and _is_live(added_at, removed_at, position):
                [(file, _, _)] = _unpacked(block[start:at], partition)
                if file.file_id == file_id:
                    return file
    except (struct.error, ValueError) as error:
        raise _damaged(partition, error) from error
    return None


def _unpacked(block: bytes | bytearray | memoryview, partition: str) -> Iterator[tuple[DataFile, int, int]]:
    """Yield each file with the positions at which it was added and removed, cheaper than as rows."""
    view = memoryview(block)
    at, end = 0, len(view)
    unpack, head = _HEAD.unpack_from, _HEAD.size
    try:
        while at < end:
            rows, size, plain, rewritten, added_at, removed_at, length = unpack(view, at)
            at += head + length
            if at > end:
                raise ValueError(_CUT_OFF)
            name, bounds = _tail(bytes(view[at - length : at]))
            yield DataFile(partition, name, rows, size, plain, rewritten, bounds=bounds), added_at, removed_at
    except (struct.error, ValueError, TypeError) as error:
        raise _damaged(partition, error) from error


def _tail(tail: bytes) -> tuple[str, tuple[Bounds, ...]]:
    """Return the name and the bounds behind a row's head. Raises ValueError, TypeError."""
    name, end, bounds = tail.partition(_END)
    return name.decode(), tuple(map(Bounds.of_fields, unpack(bounds))) if end else ()


def _is_named(name: str, tail: bytes | bytearray) -> bool:
    try:
        return _tail(bytes(tail))[0] == name
    except (ValueError, TypeError):
        return False


def _is_live(added_at: int, removed_at: int, position: int) -> bool:
    """Return the same as ``FileRow.is_live``."""
    return added_at <= position and not 0 < removed_at <= position


def _damaged(partition: str, error: Exception) -> CorruptObject:
    return CorruptObject(f"the rows of partition {partition!r} cannot be read: {error}")


def as_of(block: bytes, position: int, *, floor: int) -> tuple[bytes, int]:
    """Return the rows that are visible at positions from ``floor`` to ``position``, as they were at ``position``, and
    the first position at which one of them was removed; 0 if none was. Removed ones have no bounds: a deleted key may
    be one.
    """
    rows, oldest = list[bytes](), 0
    for row in cut_rows(block):
        added_at, removed_at, _ = _POSITIONS.unpack_from(row, _POSITIONS_OFFSET)
        if added_at > position or 0 < removed_at <= floor:
            continue
        if removed_at > position:
            rows.append(row[:_REMOVED_AT_OFFSET] + _REMOVED_AT.pack(0) + row[_REMOVED_AT_OFFSET + _REMOVED_AT.size :])
        elif removed_at:
            oldest = min(oldest or removed_at, removed_at)
            rows.append(_without_bounds(row))
        else:
            rows.append(row)
    return b"".join(rows), oldest


def _without_bounds(row: bytes) -> bytes:
    name, _, _ = row[_HEAD.size :].partition(_END)
    return row[: _HEAD.size - _LENGTH.size] + _LENGTH.pack(len(name)) + name


def cut_rows(block: bytes | bytearray | memoryview) -> Iterator[bytes]:
    """Yield each packed row of a block made by this process; its name starts at ``HEAD_BYTES``."""
    view = memoryview(block)
    at, end = 0, len(view)
    while at < end:
        size = _HEAD.size + _LENGTH.unpack_from(view, at + _HEAD.size - _LENGTH.size)[0]
        yield bytes(view[at : at + size])
        at += size


def mark_removed(block: bytearray, name: str, position: int) -> bool:
    """Set the position at which the file of this name was removed. Return False if no row has that name, or it was
    removed before.

    What a row's length covers distinguishes a name from the same text within another name.
    """
    wanted = name.encode("utf-8")
    at = block.find(wanted, _HEAD.size)
    while at >= 0:
        length = _LENGTH.unpack_from(block, at - _LENGTH.size)[0]
        if length == len(wanted) or _is_named(name, block[at : at + length]):
            offset = at - _HEAD.size + _REMOVED_AT_OFFSET
            if _REMOVED_AT.unpack_from(block, offset)[0]:
                return False
            _REMOVED_AT.pack_into(block, offset, position)
            return True
        at = block.find(wanted, at + 1)
    return False


def mark_all_removed(block: bytearray, removals: Mapping[str, int]) -> str | None:
    """Set the positions at which files of these names were removed. Return None if all of them are.

    Otherwise return the name of one that is missing, or was removed before; some of the others may be marked then.
    """
    if len(removals) <= SOUGHT_MAX:
        return next((name for name, position in removals.items() if not mark_removed(block, name, position)), None)
    wanted = {name.encode("utf-8"): position for name, position in removals.items()}
    at, end = 0, len(block)
    while at < end and wanted:
        start, at = at, at + _HEAD.size + _LENGTH.unpack_from(block, at + _HEAD.size - _LENGTH.size)[0]
        name, _, _ = bytes(block[start + _HEAD.size : at]).partition(_END)
        if name in wanted:
            if _REMOVED_AT.unpack_from(block, start + _REMOVED_AT_OFFSET)[0]:
                return name.decode("utf-8")
            _REMOVED_AT.pack_into(block, start + _REMOVED_AT_OFFSET, wanted.pop(name))
    return next((name.decode("utf-8") for name in wanted), None)


def without_removed(block: bytes | bytearray, floor: int) -> bytes:
    """Return the same rows without those that were removed at ``floor`` or before: no later position sees them."""
    return b"".join(row for row in cut_rows(block) if not 0 < _removed_at(row) <= floor)


def _removed_at(row: bytes) -> int:
    position: int = _REMOVED_AT.unpack_from(row, _REMOVED_AT_OFFSET)[0]
    return position
