"""Sizing of one job: the plan of its files, the files that its tasks have written, and what is published of both."""

import math
from collections.abc import Iterable, Sequence

from tallymark.backends.events import EventLog
from tallymark.engine.instants.table_handle import TableHandle
from tallymark.engine.jobs.file_plan import reference_files, sized
from tallymark.engine.jobs.fill_claims import claim
from tallymark.engine.jobs.fills import checked_fills, lost_fills
from tallymark.engine.settings import SizingSettings
from tallymark.engine.sizing.plan import PlannedFile, SizingPlan
from tallymark.engine.sizing.profile import WorkloadProfile, check_has_no_updates
from tallymark.engine.tasks.report import Fill, TaskReport
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.timeline.history import History
from tallymark.engine.timeline.properties import TableProperties
from tallymark.engine.timeline.summary import SizingSummary

_events = EventLog(__name__)


class JobSizing:
    def __init__(
        self,
        handle: TableHandle,
        properties: TableProperties,
        settings: SizingSettings,
        instant: str,
        *,
        is_overwrite: bool,
        has_updates: bool,
    ) -> None:
        self._handle = handle
        self._has_updates = has_updates
        self._properties = properties
        self._settings = settings
        self._instant = instant
        self._is_overwrite = is_overwrite
        self._plan: SizingPlan | None = None
        self._planned_at = 0
        self._fills: tuple[Fill, ...] = ()
        self._lost = 0
        self._expected: dict[str, int] = {}
        """Planned bytes by path, as the tasks have named the files."""
        self.has_claimed = False
        """Whether a claim of files to fill may have been published."""

    async def plan(self, profile: WorkloadProfile) -> SizingPlan:
        """Compute the plan, and publish the claim of the files to fill. A later plan replaces an earlier one."""
        if not self._has_updates:
            check_has_no_updates(profile)
        if not self._settings.is_on and not self._has_updates:  # which need to be planned in any case
            return SizingPlan(files=())
        history = await self._handle.log.refresh()
        at = self._handle.view(self._properties).at(history.head)
        files = await reference_files(at, (rows.partition for rows in profile.incoming))
        found = await sized(
            self._handle, files, profile, self._settings, is_overwrite=self._is_overwrite, instant=self._instant
        )
        is_first, self._plan, self._planned_at = self._plan is None, found, at.position
        if found.fills or not is_first:
            await self.claim(found.fills)
        _events.info(
            "instant.sized",
            instant=self._instant,
            policy=self._settings.policy,
            partitions=len({file.partition for file in found.files}),
            files=len(found.files),
            bytes=found.bytes,
            fills=len(found.fills),
            rewritten_bytes=found.rewritten_bytes,
        )
        return found

    async def claim(self, files: Iterable[DataFile]) -> None:
        """Publish that this job rewrites these files; it replaces an earlier claim."""
        self.has_claimed = True
        await claim(self._handle.backend, self._instant, [file.path for file in files])

    def checked(self, winners: Iterable[TaskReport]) -> tuple[Fill, ...]:
        """Return the fills of the reports. Raises InvalidRequest where they do not agree with the plan."""
        return checked_fills(winners, {file.fill.path: file.fill for file in self.planned if file.fill is not None})

    @property
    def planned(self) -> Sequence[PlannedFile]:
        return () if self._plan is None else self._plan.files

    def reported(self, fills: tuple[Fill, ...], winners: Iterable[TaskReport]) -> None:
        """Record the fills of the tasks whose files are to be committed."""
        self._fills = fills
        self._expected = dict(size for report in winners for size in report.planned)

    @property
    def filled(self) -> tuple[DataFile, ...]:
        """The small files that the commit replaces."""
        return tuple(fill.old for fill in self._fills)

    def lost(self, history: History) -> tuple[Fill, ...]:
        """Return the fills whose small file another commit has replaced."""
        return lost_fills(self._fills, history, planned_at=self._planned_at)

    def give_up(self, lost: Sequence[Fill]) -> None:
        """Record that the new rows of these fills are in separate files."""
        self._fills = tuple(fill for fill in self._fills if fill not in lost)
        self._lost += len(lost)

    def summary(self, added: Iterable[DataFile]) -> SizingSummary | None:
        """Return the summary for a commit of these files; None where nothing was planned."""
        if self._plan is None:
            return None
        return SizingSummary(
            planned_files=len(self._plan.files),
            planned_bytes=self._plan.bytes,
            planned_fills=sum(file.fill is not None and not file.updates for file in self._plan.files),
            filled_files=len(self._fills),
            rewritten_bytes=sum(file.bytes for file in self.filled),
            lost_fills=self._lost,
            size_error_p95=_p95(_size_errors(added, self._expected)),
        )


def _size_errors(added: Iterable[DataFile], expected: dict[str, int]) -> list[float]:
    planned = [(file.bytes, expected[file.path]) for file in added if expected.get(file.path)]
    return [abs(size - wanted) / wanted for size, wanted in planned]


def _p95(values: Sequence[float]) -> float | None:
    """Return the 95th percentile by nearest rank."""
    return round(sorted(values)[math.ceil(0.95 * len(values)) - 1], 4) if values else None
