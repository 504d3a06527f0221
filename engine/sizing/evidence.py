"""Evidence that existing files give of bytes per row and per plain byte: a rate, its certainty and its trend."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from math import exp2
from operator import itemgetter, mul

from tallymark.engine.timeline.entry import DataFile

DRIFT_MAX = 0.25
"""Maximum drift, as a share of the mean: rates that grow by a tenth with each commit are followed, and one odd commit
is not exaggerated.
"""

OF_TWO = 0.5
"""Maximum credibility of a trend of two instants, which always lie on a line, possibly by chance."""


@dataclass(frozen=True, slots=True)
class Trend:
    weight: float
    mean: float
    variance: float
    drift: float
    """Expected difference of the next instant from the mean."""


def trend(ages: Sequence[int], weights: Sequence[float], rates: Sequence[float], *, of_two: float = 0.0) -> Trend:
    """Return the trend of at least one rate, the newest first: ``ages`` are how many instants ago each was observed.

    ``of_two`` is the credibility of a trend of two instants, 0 to 1.
    """
    weight = sum(weights)
    mean = _dot(weights, rates) / weight
    off = [rate - mean for rate in rates]
    weighted = list(map(mul, weights, off))
    variance = _dot(weighted, off) / weight
    if not variance or not ages[-1]:
        return Trend(weight, mean, variance, drift=0.0)
    age = _dot(weights, ages) / weight
    older = [each - age for each in ages]
    spread = _dot(map(mul, weights, older), older) / weight
    together = _dot(weighted, older) / weight
    # The straight line through the rates goes on, as far as they lie on it.
    determined = together**2 / (spread * variance) * (of_two if ages[-1] == 1 else 1.0)
    drift = determined * together / spread * (-1 - age)
    return Trend(weight, mean, variance, min(max(drift, -DRIFT_MAX * mean), DRIFT_MAX * mean))


def believed_of_two(one: float, other: float) -> float:
    """Return the credibility of a trend of two by their weights: if one of them is insignificant, there is no trend."""
    return OF_TWO * min(one, other) / max(one, other)


def _dot(one: Iterable[float], other: Iterable[float]) -> float:
    total: float = sum(map(mul, one, other))
    return total


FOOTER_BYTES = 4096
"""Bytes of a file that do not grow with its rows: 0.6 to 5.5 KB were measured in files of 2 to 30 columns, plus those
of dictionaries, about 1 KB per column.
"""

SIGNIFICANT_BYTES = 1 << 20
"""A file of this size is as significant as any larger one. In files of 0.2 to 1 MB a row took 0 to 4 % more than in
large ones; in files of 12 to 60 KB, 16 to 92 %.
"""

NEWEST_FILES, OF_AN_INSTANT = 16, 4
"""Files of a partition that are read, and of these, files of one instant: enough to see the size of rows and
its trend.
"""

HALVED_BY = 2
"""Instants after which a file is half as significant: a drift is followed within a few commits, one odd commit
is not.
"""

_INSTANT = slice(-len("20130101000000000.parquet"), None)


@dataclass(frozen=True, slots=True)
class Observation:
    """An observed rate of one partition, or of one sample."""

    instant: str
    """Used for comparison only."""
    weight: float
    """1 for full significance."""
    rate: float
    """Encoded bytes per unit of input."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Combined observations."""

    count: int
    weight: float
    rate: float
    """Expected rate at the next instant."""
    variance: float
    newest: str
    largest: float
    """The greatest weight of a single observation: below 1 where all were of small files."""

    def observed(self) -> Observation:
        """Return it as one observation among others of its kind."""
        return Observation(self.newest, min(1.0, self.weight), self.rate)


def file_evidence(files: Sequence[DataFile], measure: Callable[[DataFile], int]) -> Evidence | None:
    """Return the evidence of the newest of these files; None where none is significant.

    ``measure`` returns the size of a file's input, 0 if unknown.
    """
    significant = [(file.name[_INSTANT], file.name, file) for file in files if file.bytes and measure(file)]
    if not significant:
        return None
    significant.sort(key=itemgetter(0, 1), reverse=True)
    by_instant = enumerate(groupby(significant, key=itemgetter(0)))
    found = ((age, file) for age, (_, of_one) in by_instant for _, _, file in islice(of_one, OF_AN_INSTANT))
    newest = list(islice(found, NEWEST_FILES))
    ages = [age for age, _ in newest]
    weights = [min(1.0, file.bytes / SIGNIFICANT_BYTES) for _, file in newest]
    rates = [_encoded_bytes(file) / measure(file) for _, file in newest]
    return _evidence(ages, weights, rates, newest=significant[0][0], of_two=_of_two(ages, weights))


def evidence(observations: Sequence[Observation]) -> Evidence | None:
    """Return the evidence of ``observations``, which are ordered newest first; None where there are none. Two instants
    show no trend here: their observations are of different partitions, or one is a sample of the new rows.
    """
    if not observations:
        return None
    ages = [age for age, (_, of_one) in enumerate(groupby(observations, key=_instant_of)) for _ in of_one]
    weights = [seen.weight for seen in observations]
    return _evidence(ages, weights, [seen.rate for seen in observations], newest=observations[0].instant)


def _evidence(
    ages: Sequence[int], weights: Sequence[float], rates: Sequence[float], *, newest: str, of_two: float = 0.0
) -> Evidence:
    found = trend(
        ages, [weight * _believed(age) for age, weight in zip(ages, weights, strict=True)], rates, of_two=of_two
    )
    return Evidence(len(ages), found.weight, found.mean + found.drift, found.variance, newest, max(weights))


def _of_two(ages: Sequence[int], weights: Sequence[float]) -> float:
    if ages[-1] != 1:
        return 0.0
    newer = ages.index(1)
    return believed_of_two(sum(weights[:newer]), sum(weights[newer:]))


def _encoded_bytes(file: DataFile) -> float:
    """Return the bytes without the footer. A file as small as its footer is nearly insignificant; rows must not appear
    to take no space.
    """
    return max(file.bytes - FOOTER_BYTES, file.bytes / 4)


def _believed(age: int) -> float:
    return exp2(-age / HALVED_BY)


def newest_instant(files: Iterable[DataFile]) -> str:
    return max(map(_instant, files))


def _instant(file: DataFile) -> str:
    return file.name[_INSTANT]


def _instant_of(seen: Observation) -> str:
    return seen.instant
