"""Packed rows of a partition."""

from contextlib import suppress

from tallymark.engine.errors import CorruptObject
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.views.block import find_live, pack_rows, unpack_live, unpack_rows
from tallymark.engine.views.row import FileRow

ROWS = [
    FileRow(DataFile("p", f"{name}_0-1-2_20260102030405006.parquet", 1, 2, 3, 4), added, removed)
    for name, added, removed in (("a-0", 1, 0), ("b-0", 2, 3), ("å-0", 4, 0))
]
POSITION = 3


def seeds() -> list[bytes]:
    return [b"", pack_rows(ROWS), pack_rows(ROWS[:1])]


def target(data: bytes) -> bool:
    with suppress(CorruptObject):
        find_live(data, "p", "a-0", POSITION)
    try:
        rows = list(unpack_rows(data, "p"))
    except CorruptObject:
        return False
    assert pack_rows(rows) == data
    live = [row.file for row in rows if row.is_live(POSITION)]
    assert unpack_live(data, "p", POSITION) == live
    for file in live:
        found = find_live(data, "p", file.file_id, POSITION)
        assert found is not None
        assert found.file_id == file.file_id
    return True
