"""Sizing plan of a write, made before any row is written.

The path of a plan::

    files -> live_files -> estimate -> policies.balanced_files | policies.hudi_files -> SizingPlan

"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice

from tallymark.engine.settings import SizingSettings
from tallymark.engine.sizing.estimate import Estimates
from tallymark.engine.sizing.fills import Fill, updated
from tallymark.engine.sizing.plan import PlannedFile, SizingPlan
from tallymark.engine.sizing.policies import balanced_files, hudi_files
from tallymark.engine.sizing.profile import (
    CommitSize,
    FileUpdates,
    IncomingRows,
    WorkloadProfile,
    added_up,
    updates_added_up,
)
from tallymark.engine.timeline.entry import DataFile

COMMITS_READ = 5
"""[_hoodie.record.size.estimator.max.commits]"""

DEFAULT_RECORD_BYTES = 1024
"""Used where no commit is large enough. [hoodie.copyonwrite.record.size.estimate]"""

THRESHOLD = 1.0
"""Share of ``small_file_bytes``: a commit that wrote no more is ignored. [hoodie.record.size.estimation.threshold]"""


def average_record_bytes(commits: Iterable[CommitSize], *, small_file_bytes: int) -> int:
    """Return the mean size in the newest commit that is large enough, rounded up; ``commits`` are ordered
    newest first.
    """
    for commit in islice(commits, COMMITS_READ):
        if commit.rows > 0 and commit.bytes > THRESHOLD * small_file_bytes:
            return -(-commit.bytes // commit.rows)
    return DEFAULT_RECORD_BYTES


def by_partition(files: Iterable[DataFile]) -> dict[str, list[DataFile]]:
    """Return the files by partition, in the given order."""
    held: defaultdict[str, list[DataFile]] = defaultdict(list)
    for file in files:
        held[file.partition].append(file)
    return dict(held)


def small_files(files: Sequence[DataFile], settings: SizingSettings, taken: AbstractSet[str]) -> list[DataFile]:
    """Return the files that an append may fill: strictly below the limit, and not being filled by another write."""
    small = [file for file in files if file.bytes < settings.small_file_bytes]
    return [file for file in small if file.path not in taken] if taken else small


def plan(profile: WorkloadProfile, files: Iterable[DataFile], settings: SizingSettings) -> SizingPlan:
    """Return the files that the incoming rows are to go to, each row counted once. With a limit of 0 only files that
    updates rewrite anyway are filled.

    ``files`` are the live ones of the table; ``"hudi"`` fills those of a partition in this order, ``"balanced"``
    ignores the order. A file with updated rows is planned whatever its size and the cost of rewriting it. Pure: the
    same profile, files and settings make the same plan, in any process.
    """
    held = by_partition(files)
    planned = _hudi if settings.policy == "hudi" else _balanced
    return SizingPlan(files=tuple(planned(profile, _arrivals(profile), held, settings)))


@dataclass(frozen=True, slots=True)
class _Arrival:
    """Input of one partition."""

    incoming: IncomingRows
    updates: Sequence[FileUpdates]


def _arrivals(profile: WorkloadProfile) -> Sequence[_Arrival]:
    incoming = {rows.partition: rows for rows in added_up(profile.incoming) if rows.rows > 0}
    updates: dict[str, list[FileUpdates]] = {}
    for found in updates_added_up(profile.updates):
        if found.rows > 0:
            updates.setdefault(found.file.partition, []).append(found)
    return [
        _Arrival(incoming.get(path, IncomingRows(path, 0)), updates.get(path, ()))
        for path in sorted({*incoming, *updates})
    ]


def _hudi(
    profile: WorkloadProfile,
    arrivals: Sequence[_Arrival],
    held: Mapping[str, Sequence[DataFile]],
    settings: SizingSettings,
) -> Iterator[PlannedFile]:
    record_bytes = average_record_bytes(profile.commits, small_file_bytes=settings.small_file_bytes)
    for arrival in arrivals:
        partition, rows = arrival.incoming.partition, arrival.incoming.rows
        small = small_files(held.get(partition, ()), settings, profile.taken)
        yield from hudi_files(partition, rows, small, arrival.updates, record_bytes=record_bytes, settings=settings)


def _balanced(
    profile: WorkloadProfile,
    arrivals: Sequence[_Arrival],
    held: Mapping[str, Sequence[DataFile]],
    settings: SizingSettings,
) -> Iterator[PlannedFile]:
    incoming = [arrival.incoming for arrival in arrivals if arrival.incoming.rows]
    estimates = Estimates.of(incoming, held, profile.sample, profile.updates)
    for arrival in arrivals:
        rows, updates = arrival.incoming, arrival.updates
        taken = profile.taken.union(each.file.path for each in updates) if updates else profile.taken
        small = small_files(held.get(rows.partition, ()), settings, taken)
        rewritten = [updated(each, estimates.bytes_with(each), settings) for each in updates]
        rewritten.sort(key=_roomiest_first)
        yield from balanced_files(rows, estimates.bytes_of(rows), small, settings, rewritten)


def _roomiest_first(fill: Fill) -> tuple[int, str]:
    return fill.bin.has, fill.file.name
