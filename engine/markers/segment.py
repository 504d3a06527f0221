"""Marker segments: the objects of a marker directory, their names and their bytes. Bytes in, values out.

The format is that of Hudi's timeline-server-based markers: below ``.hoodie/.temp/<instant>/`` a file ``MARKERS.type``
and files ``MARKERS<n>``, UTF-8, one marker a line, each line ended by a newline. A segment starts with one line more,
``//<CRC-32 of the rest, eight hexadecimal digits> <number of markers>``. It is the first line, since the last one would
be missing together with the markers before it; and it starts with two slashes, since no marker does, also if its
newline is damaged. Hudi's own rollback would refuse such a line; it never reads one, because no instant is on Hudi's
timeline before its commit. Segments of earlier releases, of Hudi's server, and those for Hudi's writers (``is_plain``)
lack the line.

A segment is never rewritten. Its number is ``incarnation << 20 | sequence``: an incarnation is one
life of one server for one instant, claimed by a put-if-absent of ``SERVER<incarnation>``, so that no number is used
twice. The first incarnation is 1,024: all numbers have ten digits, and names sort as their numbers do, on which a
reader of pages relies (``docs/decisions/0011-segment-names-sort-as-numbers.md``).
Direct markers are empty objects ``[<partition path>/]<data file>.marker.<IO>`` in the same folder.
"""

import re
import zlib
from collections.abc import Iterable

from tallymark.engine.errors import CorruptObject, InvalidRequest
from tallymark.engine.markers.name import INFIX, check_lines

TYPE_FILE = "MARKERS.type"
BATCHED_TYPE = b"TIMELINE_SERVER_BASED"
DIRECT_TYPE = b"DIRECT"

SEQUENCE_BITS = 20
SEQUENCE_COUNT = 1 << SEQUENCE_BITS
FIRST_INCARNATION = 1 << 10
"""Its first segment is MARKERS1073741824. Smaller incarnations are of earlier releases, and of Hudi's server."""
HUDI_INCARNATION = 0
INCARNATION_LIMIT = 1 << (31 - SEQUENCE_BITS)
"""Exclusive upper bound of incarnations: Hudi's server parses the number as a signed 32-bit integer."""

_SEGMENT = re.compile(r"MARKERS(\d+)")
_CLAIM = re.compile(r"SERVER(\d+)")
_INSTANT = re.compile(r"[0-9A-Za-z_-]+")


def marker_folder(instant: str) -> str:
    """Return the marker directory of an instant, relative to the table's base path. Raises InvalidRequest."""
    if not _INSTANT.fullmatch(instant):
        raise InvalidRequest(f"instant {instant!r} may hold letters, digits, '-' and '_' only; 17 digits are usual")
    return f".hoodie/.temp/{instant}"


def segment_name(incarnation: int, sequence: int) -> str:
    assert 0 <= incarnation < INCARNATION_LIMIT
    assert 0 <= sequence < SEQUENCE_COUNT
    return f"MARKERS{incarnation << SEQUENCE_BITS | sequence}"


def claim_name(incarnation: int) -> str:
    return f"SERVER{incarnation}"


def incarnation_of(file_name: str) -> int | None:
    """Return the incarnation that a file of a marker directory belongs to; None for a file of no incarnation."""
    if claim := _CLAIM.fullmatch(file_name):
        return int(claim[1])
    if segment := _SEGMENT.fullmatch(file_name):
        return int(segment[1]) >> SEQUENCE_BITS
    return None


def is_segment(file_name: str) -> bool:
    return _SEGMENT.fullmatch(file_name) is not None


def is_claim(file_name: str) -> bool:
    return _CLAIM.fullmatch(file_name) is not None


def segment_number(path: str) -> int:
    """Return the number of a segment, from its path."""
    segment = _SEGMENT.fullmatch(path.rpartition("/")[2])
    assert segment, path
    return int(segment[1])


def encode_segment(lines: Iterable[str], *, is_plain: bool = False) -> bytes:
    """Return the bytes of a segment, from which ``decode_segment`` reads the lines. ``is_plain``: without a first line
    more, as Hudi reads it.
    """
    return _segment("".join(f"{line}\n" for line in lines).encode("utf-8"), is_plain)


def merge_segments(segments: Iterable[bytes], *, is_plain: bool = False) -> bytes:
    """Return the bytes of a segment with the markers of all these. Raises CorruptObject if one is not whole."""
    return _segment(b"".join(map(_lines, segments)), is_plain)


def _segment(lines: bytes, is_plain: bool) -> bytes:
    return lines if is_plain else _head(lines) + b"\n" + lines


def _head(lines: bytes) -> bytes:
    return b"//%08x %d" % (zlib.crc32(lines), lines.count(b"\n"))


def _lines(data: bytes) -> bytes:
    """Return the markers of a whole segment, each with its newline. Raises CorruptObject."""
    if not data.endswith(b"\n"):
        raise CorruptObject(f"{len(data)} bytes that do not end with a newline")
    head, _, lines = data.partition(b"\n")
    if INFIX.encode() in head and not head.startswith(b"//"):
        return data
    if not lines or head != _head(lines):
        raise CorruptObject(f"its first line, {head[:40]!r}, does not fit the {len(lines)} bytes below")
    return lines


def is_whole(data: bytes) -> bool:
    """Return whether bytes may be a whole segment: at least one line, the last one ended, and as its head states."""
    try:
        return bool(_lines(data))
    except CorruptObject:
        return False


def decode_segment(data: bytes, *, source: str, rewritten: bool = False) -> list[str]:
    """Return the lines of a segment, each a marker's (``name``).

    ``rewritten``: its server rewrites it in place, as Hudi's does. An unfinished last line then belongs to a request
    without an answer, and does not count.

    Raises:
        CorruptObject: a line is not a marker name; or a segment that is put whole is empty, does not end with a
            newline or is not what its first line states, so it was damaged later. Unreadable markers are never treated
            as none.
    """
    try:
        lines = data if rewritten else _lines(data)
    except CorruptObject as error:
        raise CorruptObject(f"{source} is a damaged marker segment: {error}") from error
    whole, _, _ = lines.rpartition(b"\n")
    try:
        return check_lines(whole.decode("utf-8")) if whole else []
    except (UnicodeDecodeError, CorruptObject) as error:
        raise CorruptObject(f"{source} is not a marker segment: {error}") from error


def read_marker_type(data: bytes | None) -> bytes | None:
    """Return the content of MARKERS.type: BATCHED_TYPE, DIRECT_TYPE, or None where it is missing or empty.

    Raises:
        CorruptObject: its content is neither.
    """
    if not data:
        return None
    if data not in (BATCHED_TYPE, DIRECT_TYPE):
        raise CorruptObject(f"{TYPE_FILE} holds {data[:40]!r}, neither {BATCHED_TYPE!r} nor {DIRECT_TYPE!r}")
    return data
