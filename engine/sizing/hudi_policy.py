"""The partitioner of Apache Hudi's copy-on-write inserts, exact to the number (UpsertPartitioner, release 1.0).

In counts of rows, with one guess of a row's size for all partitions: updates go to their files, small files are filled
in order, whatever that rewrites and whatever updates add to them, and the rest goes to new files of equal counts, the
last of which takes the remainder.
"""

from collections.abc import Iterable, Iterator, Sequence

from tallymark.engine.settings import SizingSettings
from tallymark.engine.sizing.plan import PlannedFile, check_new_files
from tallymark.engine.sizing.profile import FileUpdates
from tallymark.engine.timeline.entry import DataFile


def hudi_files(
    partition: str,
    rows: int,
    small: Iterable[DataFile],
    updates: Sequence[FileUpdates] = (),
    *,
    record_bytes: int,
    settings: SizingSettings,
) -> Iterator[PlannedFile]:
    """Yield the files of one partition. ``small`` are those that may be filled, in the order of filling."""
    updated = {each.file.path: each.rows for each in updates}
    buckets = {each.file.path: (each.file, 0) for each in updates}
    for file in small:
        if not rows:
            break
        count = min((settings.max_file_bytes - file.bytes) // record_bytes, rows)
        if count > 0:
            buckets[file.path] = (file, count)
            rows -= count
    for path, (file, count) in buckets.items():
        yield PlannedFile(partition, count, file.bytes + count * record_bytes, file, updated.get(path, 0))
    split_rows = _split_rows(record_bytes, settings)
    check_new_files(partition, rows, rows // split_rows)
    for split in _splits(rows, split_rows):
        yield PlannedFile(partition, split, split * record_bytes)


def _split_rows(record_bytes: int, settings: SizingSettings) -> int:
    if settings.insert_split_rows != "auto":
        return settings.insert_split_rows
    return -(-settings.max_file_bytes // record_bytes)


def _splits(rows: int, split_rows: int) -> Sequence[int]:
    full, rest = divmod(rows, split_rows)
    return [split_rows] * full + [rest] * (rest > 0)
