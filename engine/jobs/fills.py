"""Small files that a job fills: those that its tasks report, and lost fills. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.sizing.profile import CommitSize
from tallymark.engine.tasks.report import Fill, TaskReport
from tallymark.engine.timeline.entry import DataFile
from tallymark.engine.timeline.history import History


def commit_sizes(history: History) -> tuple[CommitSize, ...]:
    """Return the sizes of the newest appends, newest first."""
    return tuple(CommitSize(rows, size) for rows, size in history.appends)


def checked_fills(reports: Iterable[TaskReport], planned: Mapping[str, DataFile]) -> tuple[Fill, ...]:
    """Return the fills that the tasks report, by the paths of the small files.

    Raises:
        InvalidRequest: a file that was filled twice, that the job's plan does not name, or whose rows are not reported
            in any file of the same report.
    """
    fills: dict[str, Fill] = {}
    for report in reports:
        files = {file.path for file in report.files}
        for fill in report.fills:
            if planned.get(fill.old.path) != fill.old or not files.issuperset(fill.paths) or not fill.paths:
                raise InvalidRequest(
                    f"the report of task {report.task} fills {fill.old.path} as this job's plan does not; give tasks "
                    "the planned files of this job's own WriteJob.size"
                )
            if fill.old.path in fills:
                raise InvalidRequest(
                    f"two reports have filled {fill.old.path}, and its rows would be doubled; give each planned file "
                    "to one task"
                )
            fills[fill.old.path] = fill
    return tuple(fills[path] for path in sorted(fills))


def lost_fills(fills: Sequence[Fill], history: History, *, planned_at: int) -> tuple[Fill, ...]:
    """Return the fills whose small file another commit has replaced since the position at which they were planned."""
    if not fills:
        return ()
    replaced = {file.path for file in history.replaced(range(planned_at + 1, history.head + 1))}
    return tuple(fill for fill in fills if fill.old.path in replaced)


def files_of(fills: Iterable[Fill], added: Collection[DataFile]) -> dict[str, DataFile]:
    """Return the files that start with old rows, by path."""
    paths = {path for fill in fills for path in fill.paths}
    return {file.path: file for file in added if file.path in paths}
