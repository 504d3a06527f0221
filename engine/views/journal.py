"""What a partition came to be, in the order in which it did: rows that came, and names of files that went. Sans-I/O.

A journal is a run of records. Whatever comes to a partition is put at its end, and changes nothing before it: what a
commit costs does not depend on how many files are there. A record, little-endian:

    kind    1 byte      rows, or names that went
    length  4 bytes     of what follows
    rows, packed; or    the position at which they went, 4 bytes, and each name in UTF-8 behind its length, 2 bytes
"""

import struct
from collections.abc import Collection

from tallymark.engine.errors import CorruptObject
from tallymark.engine.views.block import mark_all_removed, without_removed

_RECORD = struct.Struct("<BI")
_POSITION = struct.Struct("<I")
_LENGTH = struct.Struct("<H")
_CAME, _WENT = 1, 2


def came(block: bytes) -> bytes:
    """A record: these rows are there from now on."""
    return _RECORD.pack(_CAME, len(block)) + block


def went(names: Collection[str], position: int) -> bytes:
    """A record: the files of these names were removed at this position."""
    encoded = [name.encode("utf-8") for name in names]
    told = b"".join(part for name in encoded for part in (_LENGTH.pack(len(name)), name))
    return _RECORD.pack(_WENT, _POSITION.size + len(told)) + _POSITION.pack(position) + told


def block_of(journal: bytes) -> bytes:
    """The rows that a journal comes to, in the order in which they came.

    Raises CorruptObject where a file went that had not come, or had gone before. The bytes are those that were written.
    """
    rows: list[bytes] = []
    removals: dict[str, int] = {}
    at = 0
    while at < len(journal):
        kind, length = _RECORD.unpack_from(journal, at)
        begin, at = at + _RECORD.size, at + _RECORD.size + length
        if kind == _CAME:
            rows.append(journal[begin:at])
        else:
            _gather(journal, begin, at, removals)
    block = rows[0] if len(rows) == 1 else b"".join(rows)
    if not removals:
        return block
    changed = bytearray(block)
    absent = mark_all_removed(changed, removals)
    if absent is not None:
        raise CorruptObject(f"{absent}, which position {removals[absent]} removes, is not there")
    return bytes(changed)


def kept_block(journal: bytes, floor: int) -> bytes:
    """As ``block_of``, without the rows of files that were removed at ``floor`` or before."""
    return without_removed(block_of(journal), floor)


def _gather(journal: bytes, begin: int, end: int, removals: dict[str, int]) -> None:
    (position,) = _POSITION.unpack_from(journal, begin)
    at = begin + _POSITION.size
    while at < end:
        (length,) = _LENGTH.unpack_from(journal, at)
        begin, at = at + _LENGTH.size, at + _LENGTH.size + length
        name = journal[begin:at].decode("utf-8")
        if name in removals:
            raise CorruptObject(f"position {position} removes {name}, which position {removals[name]} has removed")
        removals[name] = position
