"""What files tell of the bytes that a row, or a plain byte, comes to once it is encoded: a rate, and how sure it is.

A file tells the more the newer it is, since rows drift, and the less the smaller it is, since its footer and
dictionaries are spread over few rows.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice

from tallymark.engine.sizing.trend import Aged, trend
from tallymark.engine.timeline.entry import DataFile

FOOTER_BYTES = 4096
"""Of a file, that do not grow with its rows: 0.6 to 5.5 KB were seen in files of 2 to 30 columns, plus what the
dictionaries take, about 1 KB a column."""

TELLING_BYTES = 1 << 20
"""A file of this size tells as much as any larger one. In files of 0.2 to 1 MB a row was seen to take 0 to 4 % more
than in large ones; in files of 12 to 60 KB, 16 to 92 %."""

NEWEST_FILES, OF_AN_INSTANT = 16, 4
"""Of a partition, that are looked at, and of these by one instant: what rows take is seen, and where that is going."""

HALVED_BY = 2
"""Instants after which a file tells half as much: a drift is followed within a few commits, one odd commit is not."""

_INSTANT = slice(-len("20130101000000000.parquet"), None)


@dataclass(frozen=True, slots=True)
class Observation:
    """One file, one partition, or one sample."""

    instant: str
    """Only compared."""
    weight: float
    """1 for as much as one can tell."""
    rate: float
    """Encoded bytes for each unit of what came in."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Observations taken together."""

    count: int
    weight: float
    rate: float
    """At the instant to come."""
    variance: float
    newest: str

    def observed(self) -> Observation:
        """As one observation among others of its kind."""
        return Observation(self.newest, min(1.0, self.weight), self.rate)


def file_evidence(files: Sequence[DataFile], measure: Callable[[DataFile], int]) -> Evidence | None:
    """Of the newest of these files; None where none tells anything. ``measure`` is what came in, 0 for not known."""
    telling = [file for file in files if file.bytes and measure(file)]
    return evidence(_observed(file, measure(file)) for file in islice(_newest(telling), NEWEST_FILES))


def evidence(observations: Iterable[Observation]) -> Evidence | None:
    """``observations`` come newest first; None where there are none."""
    instant = newest = None
    age = -1
    aged: list[Aged] = []
    for seen in observations:
        if seen.instant != instant:
            instant, age = seen.instant, age + 1
        newest = newest or seen.instant
        aged.append(Aged(age, seen.weight * 0.5 ** (age / HALVED_BY), seen.rate))
    if newest is None:
        return None
    found = trend(aged)
    return Evidence(len(aged), found.weight, found.mean + found.drift, found.variance, newest)


def newest_instant(files: Iterable[DataFile]) -> str:
    return max(map(_instant, files))


def _newest(files: Sequence[DataFile]) -> Iterator[DataFile]:
    """Some of each instant, the newest first."""
    if len(files) <= 1:
        yield from files
        return
    for _, its_files in groupby(sorted(files, key=_age, reverse=True), _instant):
        yield from islice(its_files, OF_AN_INSTANT)


def _observed(file: DataFile, measured: int) -> Observation:
    # A file of a footer's size tells next to nothing; it must not tell that rows take no bytes.
    encoded = max(file.bytes - FOOTER_BYTES, file.bytes / 4)
    return Observation(_instant(file), min(1.0, file.bytes / TELLING_BYTES), encoded / measured)


def _instant(file: DataFile) -> str:
    return file.name[_INSTANT]


def _age(file: DataFile) -> tuple[str, str]:
    return file.name[_INSTANT], file.name
