"""The planned files of one task in bytes, to travel beside its ticket: of a large plan, a task then reads its own part.

Owns: the format, which lives as long as one job of one release.
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
