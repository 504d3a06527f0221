"""The ``"hudi"`` policy against Hudi's algorithm, retold from its UpsertPartitioner: assignUpdates, then assignInserts.

The model deals with numbered buckets and floating-point division, as Hudi does; it shares nothing with the policy.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from random import Random

import pytest

from tallymark import SizingSettings
from tallymark.engine.sizing import CommitSize, IncomingRows, WorkloadProfile
from tallymark.engine.sizing.planning import plan
from tallymark.engine.sizing.profile import FileUpdates
from tallymark.engine.timeline.entry import DataFile

KIB = 1024
SMALL, MOST = 300 * KIB, 400 * KIB


@dataclass
class Bucket:
    partition: str
    file: str | None
    updates: int = 0
    inserts: int = 0


class Partitioner:
    def __init__(self, files: list[DataFile], split: int | None) -> None:
        self._files, self._split = files, split
        self._average = KIB
        self._numbers: dict[str, int] = {}
        self.buckets: list[Bucket] = []

    def learn(self, commits: Iterable[CommitSize]) -> None:
        large = [commit for commit in commits if commit.bytes > SMALL and commit.rows > 0]
        if large:
            self._average = math.ceil(1.0 * large[0].bytes / large[0].rows)

    def assign_updates(self, file: DataFile, rows: int) -> None:
        self._bucket_of(file).updates = rows

    def _bucket_of(self, file: DataFile) -> Bucket:
        if file.path not in self._numbers:
            self.buckets.append(Bucket(file.partition, file.name))
            self._numbers[file.path] = len(self.buckets) - 1
        return self.buckets[self._numbers[file.path]]

    def assign_inserts(self, partition: str, unassigned: int) -> None:
        for file in self._files:
            if file.partition == partition and file.bytes < SMALL:
                count = min((MOST - file.bytes) // self._average, unassigned)
                if count > 0:
                    self._bucket_of(file).inserts += count
                    unassigned -= count
        if unassigned > 0:
            per_bucket = self._split or math.ceil(MOST * 1.0 / self._average)
            new = math.ceil(1.0 * unassigned / per_bucket)
            for number in range(new):
                count = per_bucket if number < new - 1 else unassigned - (new - 1) * per_bucket
                self.buckets.append(Bucket(partition, None, inserts=count))


def problem(seed: int) -> tuple[list[DataFile], WorkloadProfile, int | None]:
    draw = Random(seed)
    files = [
        DataFile(partition, f"f{number}", 1000, draw.randint(1, MOST + 9 * KIB))
        for partition in ("p", "q")
        for number in range(draw.randint(0, 5))
    ]
    profile = WorkloadProfile(
        incoming=tuple(IncomingRows(partition, draw.choice([0, 9, 900, 3000])) for partition in ("p", "q")),
        updates=tuple(FileUpdates(file, draw.randint(1, 900)) for file in files if draw.random() < 0.5),
        commits=tuple(CommitSize(draw.randint(0, 3000), draw.randint(1, 3 * MOST)) for _ in range(draw.randint(0, 4))),
    )
    return files, profile, draw.choice([None, draw.randint(1, 500)])


@pytest.mark.parametrize("seeds", [range(100), range(100, 200), range(200, 300)], ids=str)
def test_updates_and_inserts_are_dealt_as_by_hudi(seeds: range) -> None:
    for seed in seeds:
        files, profile, split = problem(seed)
        assert ours(files, profile, split) == hudis(files, profile, split), seed


def ours(files: list[DataFile], profile: WorkloadProfile, split: int | None) -> list[Bucket]:
    sizing = SizingSettings(
        policy="hudi", max_file_bytes=MOST, small_file_bytes=SMALL, insert_split_rows="auto" if split is None else split
    )
    made = plan(profile, files, sizing).files
    return [Bucket(each.partition, each.fill.name if each.fill else None, each.updates, each.rows) for each in made]


def hudis(files: list[DataFile], profile: WorkloadProfile, split: int | None) -> list[Bucket]:
    hudi = Partitioner(files, split)
    hudi.learn(profile.commits)
    for each in profile.updates:
        hudi.assign_updates(each.file, each.rows)
    for rows in profile.incoming:
        hudi.assign_inserts(rows.partition, rows.rows)
    return sorted(hudi.buckets, key=lambda bucket: bucket.partition)
