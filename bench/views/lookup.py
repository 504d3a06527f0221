"""Lookups: the files of a partition, or one file of it by its id."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tallymark.engine.timeline.entry import DataFile

LOOKUPS = 10_000
"""Different ones; a longer load repeats them."""


@dataclass(frozen=True, slots=True)
class Lookup:
    partition: str
    file_id: str | None
    """None: all of its files."""
    files: int
    """In a right answer."""

    def fields(self) -> list[object]:
        """Return the arguments that make it in another process."""
        return [self.partition, self.file_id, self.files]


def lookups(files: Sequence[DataFile], random: Random, count: int = LOOKUPS) -> tuple[Lookup, ...]:
    """Return half for a partition and half for a file, of equally likely partitions."""
    held = Counter(file.partition for file in files)
    chosen = [random.choice(files) for _ in range(count)]
    return tuple(
        Lookup(file.partition, None, held[file.partition]) if number % 2 else _of_file(file)
        for number, file in enumerate(chosen)
    )


def _of_file(file: DataFile) -> Lookup:
    return Lookup(file.partition, file.file_id, 1)
