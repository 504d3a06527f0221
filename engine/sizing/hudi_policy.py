"""The partitioner of Apache Hudi's copy-on-write inserts, to the number (UpsertPartitioner, release 1.0).

In counts of rows, with one guess of a row's size for all partitions: small files are filled first come, first served,
whatever that rewrites, and what is left goes to new files of equal counts, the last of which takes the remainder.
"""

from collections.abc import Iterable, Iterator, Sequence

from tallymark.engine.settings import SizingSettings
from tallymark.engine.sizing.plan import PlannedFile
from tallymark.engine.timeline.entry import DataFile


def hudi_files(
    partition: str, rows: int, small: Iterable[DataFile], *, record_bytes: int, settings: SizingSettings
) -> Iterator[PlannedFile]:
    """The files of one partition. ``small`` are those that may be filled, in the order in which they are."""
    for file in small:
        taken = min((settings.max_file_bytes - file.bytes) // record_bytes, rows)
        if taken > 0:
            yield PlannedFile(partition, taken, file.bytes + taken * record_bytes, fill=file)
            rows -= taken
    for split in _splits(rows, _split_rows(record_bytes, settings)):
        yield PlannedFile(partition, split, split * record_bytes)


def _split_rows(record_bytes: int, settings: SizingSettings) -> int:
    if settings.insert_split_rows != "auto":
        return settings.insert_split_rows
    return -(-settings.max_file_bytes // record_bytes)


def _splits(rows: int, split_rows: int) -> Sequence[int]:
    full, rest = divmod(rows, split_rows)
    return [split_rows] * full + [rest] * (rest > 0)
