"""What arrives at a table, commit by commit, and what it comes to once it is encoded."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tallymark.engine.timeline.entry import DataFile


@dataclass(frozen=True, slots=True)
class Arrival:
    """The rows that a commit has for one partition."""

    partition: str
    rows: int
    plain_bytes: int
    """Before they are encoded, as any engine can measure it."""
    bytes: int
    """That they take in a Parquet file: what a planner has to guess."""


Commit = tuple[Arrival, ...]
"""A partition each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A history of appends."""

    name: str
    label: str
    commits: tuple[Commit, ...]
    max_file_bytes: int
    small_file_bytes: int
    before: tuple[DataFile, ...] = ()
    """Files that the table has at first."""
    tasks: int = 1
    """Tasks with rows of every partition, without sizing: each leaves one file in each."""
    variation: float = 0.0
    """How far files differ from what their rows take on average: the standard deviation over the mean."""

    @property
    def inserted_bytes(self) -> int:
        return sum(arrival.bytes for commit in self.commits for arrival in commit)

    def at_once(self, times: int) -> "Shape":
        """All of it in one commit, and so many of these one after the other."""
        return replace(self, commits=(_together(self.commits),) * times)


def _together(commits: Iterable[Commit]) -> Commit:
    found: dict[str, list[Arrival]] = defaultdict(list)
    for commit in commits:
        for arrival in commit:
            found[arrival.partition].append(arrival)
    return tuple(_sum(partition, found[partition]) for partition in sorted(found))


def _sum(partition: str, arrivals: Iterable[Arrival]) -> Arrival:
    rows, plain_bytes, encoded = 0, 0, 0
    for arrival in arrivals:
        rows, plain_bytes, encoded = (
            rows + arrival.rows,
            plain_bytes + arrival.plain_bytes,
            encoded + arrival.bytes,
        )
    return Arrival(partition, rows, plain_bytes, encoded)
