"""What is known of the rows that a write brings, before any of them is written."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IncomingRows:
    """What a write has for one partition."""

    partition: str
    """Partition path; empty for a table without partitions."""
    rows: int
    plain_bytes: int | None = None
    """Their size as ``plain_bytes`` measures it; None where nobody has measured."""

    def __add__(self, other: "IncomingRows") -> "IncomingRows":
        """Both, of one partition."""
        assert self.partition == other.partition, "rows of different partitions"
        known = None not in (self.plain_bytes, other.plain_bytes)
        size = (self.plain_bytes or 0) + (other.plain_bytes or 0)
        return IncomingRows(self.partition, self.rows + other.rows, size if known else None)


def added_up(rows: Iterable[IncomingRows]) -> tuple[IncomingRows, ...]:
    """Those of one partition together, sorted by partition."""
    sums: dict[str, IncomingRows] = {}
    for found in rows:
        before = sums.get(found.partition)
        sums[found.partition] = found if before is None else before + found
    return tuple(sums[partition] for partition in sorted(sums))


@dataclass(frozen=True, slots=True)
class Sample:
    """Some of the incoming rows, encoded to see what they come to."""

    rows: int
    plain_bytes: int
    encoded_bytes: int
    """Of their columns in a Parquet file, compressed, without the footer. Of about 1 MB on they tell what a large file
    takes; of less, up to a few times more, since dictionaries are spread over few rows."""


@dataclass(frozen=True, slots=True)
class CommitSize:
    """What one earlier commit has written."""

    rows: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadProfile:
    """What a plan goes by, beside the table's files."""

    incoming: tuple[IncomingRows, ...]
    """A partition each."""
    sample: Sample | None = None
    """Of these rows; worth its cost where the table has no files to learn from."""
    commits: tuple[CommitSize, ...] = ()
    """The newest first; only the ``"hudi"`` policy asks for them. Those that Hudi looks at: appends with all that they
    wrote, the files they filled included; no overwrite, which is a replacecommit there."""
    taken: frozenset[str] = frozenset()
    """Paths of files that another live instant is filling."""

    @classmethod
    def of(cls, parts: Iterable["WorkloadProfile"]) -> "WorkloadProfile":
        """Of all the rows that were profiled in parts; the sample is that of the first part that has one."""
        parts = tuple(parts)
        return cls(
            incoming=added_up(found for part in parts for found in part.incoming),
            sample=next((part.sample for part in parts if part.sample is not None), None),
            commits=max((part.commits for part in parts), key=len, default=()),
            taken=frozenset().union(*(part.taken for part in parts)),
        )
