"""What one write job has done so far, in numbers that add up over jobs."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tallymark.engine.markers.histogram import Histogram
from tallymark.engine.tasks.report import TaskReport
from tallymark.engine.timeline.entry import LogEntry

Outcome = Literal["committed", "rolled_back", "failed"]
"""``failed``: the job could not begin, or storage fell silent at its end, and the next writer finishes it or rolls it
back."""

Key = tuple[str, ...]
"""The name of a counter in ``prometheus.METRICS``, and the values of its labels."""


def no_counts() -> defaultdict[Key, float]:
    return defaultdict(float)


@dataclass(frozen=True, slots=True)
class Reading:
    """Counters and gauges, and histograms by their names."""

    counts: defaultdict[Key, float] = field(default_factory=no_counts)
    histograms: dict[str, Histogram] = field(default_factory=dict)

    def add(self, counts: Mapping[Key, float], *, sign: Literal[1, -1] = 1) -> None:
        for key, value in counts.items():
            self.counts[key] += sign * value


class JobMeter:
    """Owned by the job's event loop; any thread may call ``reading``."""

    def __init__(self, operation: str) -> None:
        self._operation = operation
        self._counts = no_counts()
        self._proposed: dict[Key, float] = {}
        self._outcome: Outcome = "failed"

    def proposed(self, entry: LogEntry) -> None:
        """The log is asked to take this entry; the last one counts, once it is ``committed``."""
        self._proposed |= {
            ("committed_rows",): entry.new_rows,
            ("committed_bytes",): sum(file.bytes for file in entry.added),
            ("committed_files",): len(entry.added),
            ("replaced_files",): len(entry.removed),
            ("filled_files",): len(entry.filled),
            ("rewritten_bytes",): sum(file.bytes for file in entry.filled),
            ("lost_fills",): entry.summary.sizing.lost_fills if entry.summary and entry.summary.sizing else 0,
        }

    def reported(self, winners: Sequence[TaskReport]) -> None:
        """By the tasks of the job; they count with its entry."""
        self._proposed |= {
            ("tasks",): len(winners),
            ("task_seconds",): sum(report.seconds for report in winners),
            ("task_marker_wait_seconds",): sum(report.marker_wait_s for report in winners),
            ("markers", "direct"): sum(report.direct_markers for report in winners),
        }

    def committed(self) -> None:
        self._outcome = "committed"
        self._counts.update(self._proposed)

    def looked_up(self) -> None:
        """A task has asked the service what partitions hold."""
        self._counts["look_ups",] += 1

    def conflicted(self) -> None:
        self._counts["conflicts",] += 1

    def rolled_back(self) -> None:
        self._outcome = "rolled_back"

    def ended(self) -> None:
        self._counts["jobs", self._operation, self._outcome] += 1

    def reading(self) -> Reading:
        """Up to now; the job may go on. Its markers are counted with those of all engines (``process_markers``)."""
        return Reading(self._counts.copy())
