"""Planned files of one task as bytes, to be sent beside its ticket: of a large plan, a task then gets its own part
only.

Owns: the format, a checked map (``packed``). Later releases may add to it, after what this one reads.
"""

from collections.abc import Iterable
from typing import Any

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.packed import pack_checked, unpack_checked
from tallymark.engine.sizing.plan import PlannedFile
from tallymark.engine.timeline.entry import DataFile

FORMAT = 1
_MAGIC = b"TMTP"


def encode_task_plan(files: Iterable[PlannedFile]) -> bytes:
    planned = [
        [each.partition, each.rows, each.bytes, each.fill and each.fill.fields(), each.updates] for each in files
    ]
    return pack_checked(_MAGIC, {"format": FORMAT, "files": planned})


def decode_task_plan(data: bytes) -> tuple[PlannedFile, ...]:
    """Return the planned files. Raises InvalidRequest for a plan that was damaged on its way, or of another format."""
    try:
        found = unpack_checked(_MAGIC, data)
        if found["format"] != FORMAT:
            raise ValueError(f"it is of format {found['format']!r}, and this release reads format {FORMAT}")
        return tuple(map(_planned_file, found["files"]))
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidRequest(f"the plan of a task cannot be read: {error}; run the task again") from error


def _planned_file(fields: list[Any]) -> PlannedFile:
    partition, rows, size, fill, updates = fields[:5]
    return PlannedFile(partition, rows, size, None if fill is None else DataFile.of_fields(fill), updates)
