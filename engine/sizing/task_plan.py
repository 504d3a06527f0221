"""Planned files of one task as bytes, to be sent beside its ticket: of a large plan, a task then gets its own part
only.

Owns: the format, which is valid for one job of one release.
"""

from collections.abc import Iterable
from typing import Any

import msgpack

from tallymark.engine.sizing.plan import PlannedFile
from tallymark.engine.timeline.entry import DataFile


def encode_task_plan(files: Iterable[PlannedFile]) -> bytes:
    packed: bytes = msgpack.packb(
        [[file.partition, file.rows, file.bytes, file.fill and file.fill.fields(), file.updates] for file in files]
    )
    return packed


def decode_task_plan(data: bytes) -> tuple[PlannedFile, ...]:
    fields: list[list[Any]] = msgpack.unpackb(data)
    return tuple(
        PlannedFile(partition, rows, size, None if fill is None else DataFile.of_fields(fill), updates)
        for partition, rows, size, fill, updates in fields
    )
