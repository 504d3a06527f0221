"""Encoded bytes per unit of input, partition by partition.

A partition is estimated from its own files as far as they are credible, and otherwise like the other partitions
(credibility, as in actuarial science): evidence of weight w counts w / (w + k), where k is the variance among files of
one partition over the variance among partitions.

Where all files are small, and so have more bytes per row than large ones, they still show how partitions differ. A
sample, if there is one, shows the bytes per row in larger files.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest
from typing import Self

from tallymark.engine.sizing.evidence import Evidence, Observation, evidence, file_evidence, newest_instant
from tallymark.engine.timeline.entry import DataFile

PARTITIONS_COMPARED = 32
"""Minimum number of the table's partitions to compare; those that the write adds to are all read, then the newest."""

_DOUBT_MIN, _DOUBT, _DOUBT_MAX = 1 / 64, 1 / 16, 8.0
"""Bounds of k, and its default where no partition has two files: a partition of 1 MB is estimated almost by itself, one
of 10 KB almost like the others.
"""


@dataclass(frozen=True, slots=True)
class Rates:
    """Rates by one measure: rows, or plain bytes."""

    table: Evidence
    partitions: Mapping[str, Evidence]
    doubt: float
    """The k of the module's docstring."""
    level: float = 1.0
    """Ratio of a sample's rate to the files' rate, as far as these are small."""

    @classmethod
    def of(
        cls,
        wanted: Iterable[str],
        stored: Mapping[str, Sequence[DataFile]],
        measure: Callable[[DataFile], int],
        sampled: Observation | None,
    ) -> Self | None:
        """Return the rates; None where neither a file nor the sample shows anything."""
        compared = {partition for partition in wanted if partition in stored}
        if len(compared) < PARTITIONS_COMPARED:
            compared |= _newest(stored, PARTITIONS_COMPARED)
        found = {path: file_evidence(stored[path], measure) for path in sorted(compared)}
        partitions = {path: seen for path, seen in found.items() if seen is not None}
        files, table = _of_table(partitions.values(), None), _of_table(partitions.values(), sampled)
        if table is None:
            return None
        rates = cls(table, partitions, _doubt(partitions.values()))
        return rates if sampled is None or files is None else rates._levelled(files, sampled)

    def _levelled(self, files: Evidence, sampled: Observation) -> Self:
        share = sampled.weight * (1.0 - max(seen.largest for seen in self.partitions.values()) ** 2)
        table = replace(self.table, rate=self.table.rate + share * (sampled.rate - self.table.rate))
        return replace(self, table=table, level=1.0 + share * (sampled.rate / files.rate - 1.0))

    def rate(self, partition: str) -> float:
        own = self.partitions.get(partition)
        if own is None:
            return self.table.rate
        credibility = own.weight / (own.weight + self.doubt)
        return credibility * own.rate * self.level + (1 - credibility) * self.table.rate


def _newest(stored: Mapping[str, Sequence[DataFile]], count: int) -> set[str]:
    if len(stored) <= count:
        return set(stored)
    return set(nlargest(count, stored, key=lambda path: (newest_instant(stored[path]), path)))


def _of_table(partitions: Iterable[Evidence], sampled: Observation | None) -> Evidence | None:
    observed = sorted((seen.observed() for seen in partitions), key=lambda seen: seen.instant, reverse=True)
    if sampled is not None:
        observed.insert(0, sampled)  # of rows that are just coming in
    return evidence(observed)


def _doubt(partitions: Iterable[Evidence]) -> float:
    several = [seen for seen in partitions if seen.count > 1]
    if not several:
        return _DOUBT
    mean = sum(seen.rate for seen in several) / len(several)
    between = sum((seen.rate - mean) ** 2 for seen in several) / len(several)
    within = sum(seen.variance for seen in several) / len(several)
    return min(max(within / between, _DOUBT_MIN), _DOUBT_MAX) if between else _DOUBT_MAX
