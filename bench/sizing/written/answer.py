"""What the appends of each side have left and taken."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from tallymark.bench.paired import Estimate, compare
from tallymark.bench.sizing.figures import FROM_COMMIT, histogram, minimum, percentile
from tallymark.bench.sizing.written.folder import Landed
from tallymark.bench.writes.answer import Reading
from tallymark.bench.writes.order import PLAN_ERROR, Done


@dataclass(frozen=True, kw_only=True)
class WrittenRow:
    """One side of one case."""

    side: str
    title: str
    done: tuple[Done, ...]
    """An append each."""
    rows: int
    """That its readers see in the end."""
    files: tuple[tuple[str, int], ...]
    """Folder and bytes of those that they read."""
    landed: tuple[Landed, ...]
    """All that were ever written, as far as they were there after their append."""

    @cached_property
    def bytes(self) -> int:
        return sum(size for _, size in self.files)

    @property
    def written_over_left(self) -> float:
        """Bytes of files written for each byte that is left."""
        return sum(file.bytes for file in self.landed) / self.bytes

    def total(self, reading: Reading) -> float:
        """Over all appends."""
        return sum(map(reading, self.done))

    def ratio(self, ours: "WrittenRow", reading: Reading) -> Estimate:
        """Ours over this side's, append by append."""
        return compare([*map(reading, ours.done)], [*map(reading, self.done)]).ratio

    def figure(self, name: str) -> float | None:
        """The largest that an append has told."""
        found = [value for done in self.done if isinstance(value := done.figures.get(name), int | float)]
        return max(found, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenSection:
    """One case."""

    case: str
    label: str
    max_file_bytes: int
    small_file_bytes: int
    rows: tuple[WrittenRow, ...]
    absent: Mapping[str, str]
    """By title, why it took no part."""

    @property
    def ours(self) -> WrittenRow | None:
        return next((row for row in self.rows if row.side == "balanced"), None)

    def minimum(self, row: WrittenRow) -> int:
        """Files of the maximum that its bytes need."""
        return minimum(row.files, self.max_file_bytes)

    def small_share(self, row: WrittenRow) -> float:
        return sum(size < self.small_file_bytes for _, size in row.files) / len(row.files)

    def error_p95(self, row: WrittenRow) -> float | None:
        """As in the arithmetic; which file was the last cannot be seen, so each append's smallest is left out."""
        return error_p95(row.landed, self.max_file_bytes)

    def plan_error_p95(self, row: WrittenRow) -> float | None:
        """Of the commit whose files differ most from what its plan said, from the third on; None without a plan."""
        return max(
            (float(done.figures[PLAN_ERROR]) for done in row.done[FROM_COMMIT - 1 :] if PLAN_ERROR in done.figures),
            default=None,
        )

    def largest(self, row: WrittenRow) -> float:
        return max(file.bytes for file in row.landed) / self.max_file_bytes

    def histogram(self, row: WrittenRow) -> tuple[int, ...]:
        return histogram((size for _, size in row.files), self.max_file_bytes)

    def document(self) -> dict[str, Any]:
        return {
            "case": self.case,
            "label": self.label,
            "max_file_bytes": self.max_file_bytes,
            "small_file_bytes": self.small_file_bytes,
            "sides": [self._side(row) for row in self.rows],
            "absent": dict(self.absent),
        }

    def _side(self, row: WrittenRow) -> dict[str, Any]:
        return {
            "side": row.side,
            "title": row.title,
            "files": len(row.files),
            "minimum": self.minimum(row),
            "bytes": row.bytes,
            "small_share": self.small_share(row),
            "written_over_left": row.written_over_left,
            "error_p95": self.error_p95(row),
            "plan_error_p95": self.plan_error_p95(row),
            "largest": self.largest(row),
            "histogram": list(self.histogram(row)),
            "appends": [asdict(done) for done in row.done],
        }


def error_p95(landed: Sequence[Landed], max_file_bytes: int) -> float | None:
    """None where no append has left two files of a partition."""
    found: dict[tuple[int, str], list[int]] = defaultdict(list)
    for file in landed:
        if file.append >= FROM_COMMIT:
            found[file.append, file.partition].append(file.bytes)
    errors = [abs(size - max_file_bytes) / max_file_bytes for sizes in found.values() for size in sorted(sizes)[1:]]
    return percentile(errors)
