"""Reports that a job is committed with: one per task, all of the job's instant."""

from collections.abc import Iterable

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.tasks.report import TaskReport


def check_reports(reports: Iterable[TaskReport], instant: str) -> list[TaskReport]:
    """Return the reports, each once. Raises InvalidRequest for those of another instant, and for two of one task."""
    winners: dict[int, TaskReport] = {}
    if isinstance(reports, TaskReport):
        raise InvalidRequest("commit takes all reports of the job at once; give a list of them")
    for report in reports:
        if report.instant != instant:
            raise InvalidRequest(
                f"report of task {report.task} belongs to instant {report.instant}, this job is {instant}; "
                "commit the reports of this job's ticket"
            )
        if winners.setdefault(report.task, report) != report:
            raise InvalidRequest(
                f"two reports of task {report.task} (attempts {winners[report.task].attempt} and {report.attempt}); "
                "commit only the winner's"
            )
    return list(winners.values())
