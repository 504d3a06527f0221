"""Which files a write is to leave, decided before any row is written.

The way of a plan::

    files -> live_files -> estimate -> balanced_policy | hudi_policy -> SizingPlan
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tallymark.engine.settings import SizingSettings
from tallymark.engine.sizing.balanced_policy import balanced_files
from tallymark.engine.sizing.estimate import Estimates
from tallymark.engine.sizing.hudi_policy import hudi_files
from tallymark.engine.sizing.live_files import by_partition, small_files
from tallymark.engine.sizing.plan import PlannedFile, SizingPlan
from tallymark.engine.sizing.profile import IncomingRows, WorkloadProfile
from tallymark.engine.sizing.record_size import average_record_bytes
from tallymark.engine.timeline.entry import DataFile


def plan(profile: WorkloadProfile, files: Iterable[DataFile], settings: SizingSettings) -> SizingPlan:
    """The files that the incoming rows are to go to, each row counted once; none where sizing is off.

    ``files`` are the live ones of the table; ``"hudi"`` fills those of a partition in this order, ``"balanced"`` looks
    at none. Pure: the same profile, files and settings make the same plan, in any process.
    """
    if not settings.is_on:
        return SizingPlan(files=())
    incoming = [rows for rows in sorted(profile.incoming, key=_partition_of) if rows.rows > 0]
    held = by_partition(files)
    planned = _hudi if settings.policy == "hudi" else _balanced
    return SizingPlan(files=tuple(planned(profile, incoming, held, settings)))


def _hudi(
    profile: WorkloadProfile,
    incoming: Sequence[IncomingRows],
    held: Mapping[str, Sequence[DataFile]],
    settings: SizingSettings,
) -> Iterator[PlannedFile]:
    record_bytes = average_record_bytes(profile.commits, small_file_bytes=settings.small_file_bytes)
    for rows in incoming:
        small = small_files(held.get(rows.partition, ()), settings, profile.taken)
        yield from hudi_files(rows.partition, rows.rows, small, record_bytes=record_bytes, settings=settings)


def _balanced(
    profile: WorkloadProfile,
    incoming: Sequence[IncomingRows],
    held: Mapping[str, Sequence[DataFile]],
    settings: SizingSettings,
) -> Iterator[PlannedFile]:
    estimates = Estimates.of(incoming, held, profile.sample)
    for rows in incoming:
        small = small_files(held.get(rows.partition, ()), settings, profile.taken)
        yield from balanced_files(rows, estimates.bytes_of(rows), small, settings)


def _partition_of(rows: IncomingRows) -> str:
    return rows.partition
