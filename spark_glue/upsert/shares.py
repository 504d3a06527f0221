"""Shares of the new keys of each partition: which task gets which range of them.

The ranges are cut by a sample of the batch's keys, so that each task gets about as many rows as are planned, and keys
that are near each other, as they arrive, are stored together.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tallymark.engine.upsert.keys import PARTITION, KeyReport
from tallymark.spark_glue.routing import Tasks

SAMPLED_KEYS_MAX = 50_000
"""Maximum number of sampled keys that are used: of a file of a thousandth of the batch, its size within a seventh."""


@dataclass(frozen=True, slots=True)
class KeyShares:
    """The tasks of one partition, in the order of their keys."""

    tasks: Sequence[int]
    bounds: Sequence[tuple[Any, ...]] = ()
    """The least key of each task but the first."""


@dataclass(frozen=True, slots=True)
class SampledKey:
    partition: str
    key: tuple[Any, ...]
    rows: float
    """Rows of the batch that it represents."""


def planned_rows(tasks: Tasks) -> dict[str, list[tuple[int, int]]]:
    """Return by partition the tasks that take new rows, and how many; where none is planned for them, the first one
    that has a file there.
    """
    planned: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, files in enumerate(tasks):
        for file in files:
            planned[file.partition].append((number, file.rows))
    return {path: [(task, rows) for task, rows in found if rows] or found[:1] for path, found in planned.items()}


def sampled_keys(reports: Iterable[KeyReport], partitions: Iterable[str]) -> list[SampledKey]:
    """Return the sampled keys of these partitions, all or evenly chosen ones."""
    wanted = pa.array(list(partitions), pa.string())
    samples: list[tuple[pa.Table, float]] = []
    for segment in (segment for report in reports for segment in report.segments):
        sample = pa.ipc.open_stream(segment.sample).read_all()
        rows = sum(keys.rows for keys in segment.partitions) / max(1, sample.num_rows)
        samples.append((sample.filter(pc.is_in(sample.column(PARTITION), value_set=wanted)), rows))
    step = 1 + sum(sample.num_rows for sample, _ in samples) // SAMPLED_KEYS_MAX
    found = []
    for sample, rows in samples:
        chosen = sample.take(pa.array(range(0, sample.num_rows, step), pa.int64())).to_pydict()
        paths: list[Any] = chosen.pop(PARTITION)
        keys = zip(*chosen.values(), strict=True)
        found += [SampledKey(path, key, rows * step) for path, key in zip(paths, keys, strict=True)]
    return found


def shares_of(planned: dict[str, list[tuple[int, int]]], sample: Iterable[SampledKey]) -> dict[str, KeyShares]:
    """Return the tasks of each partition, and what separates their keys."""
    keys: defaultdict[str, list[SampledKey]] = defaultdict(list)
    for sampled in sample:
        keys[sampled.partition].append(sampled)
    return {path: _shares(tasks, keys[path]) for path, tasks in planned.items()}


def _shares(planned: Sequence[tuple[int, int]], sample: list[SampledKey]) -> KeyShares:
    tasks = [task for task, _ in planned]
    total = sum(rows for _, rows in planned)
    if len(tasks) == 1 or not sample or not total:
        return KeyShares(tasks[:1])
    sample.sort(key=lambda sampled: sampled.key)
    before = [0.0, *accumulate(sampled.rows for sampled in sample)]
    bounds = []
    place = 0
    for end in list(accumulate(rows for _, rows in planned))[:-1]:
        while place < len(sample) - 1 and before[place] < before[-1] * end / total:
            place += 1
        bounds.append(sample[place].key)
    return KeyShares(tasks, bounds)
