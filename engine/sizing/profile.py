"""Workload profile: the facts known of a write's rows before any is written."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Protocol, Self, TypeVar

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.timeline.entry import DataFile


@dataclass(frozen=True, slots=True)
class IncomingRows:
    """Rows of a write for one partition."""

    partition: str
    """Partition path; empty for a table without partitions."""
    rows: int
    plain_bytes: int | None = None
    """Their size as ``plain_bytes`` measures it; None if it was not measured."""

    def __post_init__(self) -> None:
        _check_counts(f"partition {self.partition!r}", self.rows, self.plain_bytes)

    def __add__(self, other: "IncomingRows") -> "IncomingRows":
        """Return the sum of both, which are of one partition."""
        assert self.partition == other.partition, "rows of different partitions"
        return IncomingRows(self.partition, self.rows + other.rows, _known_sum(self.plain_bytes, other.plain_bytes))


def added_up(rows: Iterable[IncomingRows]) -> tuple[IncomingRows, ...]:
    """Return the sums by partition, sorted by partition."""
    return _summed(rows, attrgetter("partition"))


@dataclass(frozen=True, slots=True)
class FileUpdates:
    """Updated rows of one file. They go to that file, whatever its size."""

    file: DataFile
    rows: int
    plain_bytes: int | None = None
    """Size of the rows after the update, by ``plain_bytes``; None if it was not measured."""

    def __post_init__(self) -> None:
        _check_counts(self.file.path, self.rows, self.plain_bytes)

    def __add__(self, other: "FileUpdates") -> "FileUpdates":
        """Return the sum of both, which are of one file."""
        assert self.file.path == other.file.path, "updates of different files"
        return FileUpdates(self.file, self.rows + other.rows, _known_sum(self.plain_bytes, other.plain_bytes))


@dataclass(frozen=True, slots=True)
class Sample:
    """Some of the incoming rows, encoded to measure their size."""

    rows: int
    plain_bytes: int
    encoded_bytes: int
    """Size of their columns in a Parquet file, compressed, without the footer. From about 1 MB on it is that of rows in
    a large file; a smaller sample takes up to a few times more per row, since dictionaries are spread over few rows.
    """


@dataclass(frozen=True, slots=True)
class CommitSize:
    """Size of one earlier commit."""

    rows: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadProfile:
    """Input of a plan, beside the table's files."""

    incoming: tuple[IncomingRows, ...]
    """One value per partition."""
    updates: tuple[FileUpdates, ...] = ()
    """One value per file; their rows are not in ``incoming``."""
    sample: Sample | None = None
    """A sample of these rows; worth its cost where the table has no files to learn from."""
    commits: tuple[CommitSize, ...] = ()
    """The newest first; only the ``"hudi"`` policy uses them. Those that Hudi reads: appends with everything that they
    wrote, the files they filled included; no overwrite, which is a replacecommit there.
    """
    taken: frozenset[str] = frozenset()
    """Paths of files that another live instant is filling."""

    @classmethod
    def of(cls, parts: Iterable["WorkloadProfile"]) -> "WorkloadProfile":
        """Return the profile of rows that were profiled in parts; the sample is that of the first part that has one."""
        parts = tuple(parts)
        return cls(
            incoming=added_up(found for part in parts for found in part.incoming),
            updates=updates_added_up(found for part in parts for found in part.updates),
            sample=next((part.sample for part in parts if part.sample is not None), None),
            commits=max((part.commits for part in parts), key=len, default=()),
            taken=frozenset().union(*(part.taken for part in parts)),
        )


def updates_added_up(updates: Iterable[FileUpdates]) -> tuple[FileUpdates, ...]:
    """Return the sums by file, sorted by path."""
    return _summed(updates, attrgetter("file.path"))


class _Summable(Protocol):
    def __add__(self, other: Self, /) -> Self: ...


_Counted = TypeVar("_Counted", bound=_Summable)


def _summed(counted: Iterable[_Counted], key: Callable[[_Counted], str]) -> tuple[_Counted, ...]:
    """Return the sums by key, sorted by key."""
    sums: dict[str, _Counted] = {}
    for found in counted:
        before = sums.get(key(found))
        sums[key(found)] = found if before is None else before + found
    return tuple(sums[name] for name in sorted(sums))


def _check_counts(of: str, rows: object, plain_bytes: object) -> None:
    for name, count in (("rows", rows), ("plain_bytes", 0 if plain_bytes is None else plain_bytes)):
        if not isinstance(count, int) or count < 0:
            raise InvalidRequest(f"{name}={count!r} of {of}: give a whole number, 0 or more")


def _known_sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def check_has_no_updates(profile: WorkloadProfile) -> None:
    """Refuse a profile with updates.

    Raises:
        InvalidRequest: the profile names updates; appends and overwrites add new rows only.
    """
    if profile.updates:
        raise InvalidRequest(
            f"the profile has updates of {len(profile.updates)} files, the first of {profile.updates[0].file.path}: "
            "appends and overwrites bring new rows alone; leave them out"
        )
