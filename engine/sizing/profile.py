"""What is known of the rows that a write brings, before any of them is written."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IncomingRows:
    """What a write has for one partition."""

    partition: str
    """Partition path; empty for a table without partitions."""
    rows: int
    plain_bytes: int | None = None
    """Their size as ``plain_bytes`` measures it; None where nobody has measured."""


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
