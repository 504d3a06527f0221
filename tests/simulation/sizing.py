"""Appends whose files are planned: what a writer tells the planner, and which planned file each of its tasks gets."""

from collections import Counter

from tallymark.engine.jobs.write_job import WriteJob
from tallymark.engine.settings import SizingSettings
from tallymark.engine.sizing import IncomingRows, PlannedFile, WorkloadProfile
from tests.simulation.plan import WriterPlan
from tests.simulation.rows import ROWS, partition_of


def sizing_of(plan: WriterPlan) -> SizingSettings:
    """Without fills a file is full with its second batch. Whoever fills may rewrite a file as often as it likes."""
    if not plan.fill_bytes:
        return SizingSettings(max_file_bytes=1000, small_file_bytes=0)
    return SizingSettings(max_file_bytes=plan.fill_bytes, small_file_bytes=plan.fill_bytes, rewrite_budget=1000)


async def planned_files(job: WriteJob, plan: WriterPlan, *, by_year: bool) -> list[list[PlannedFile]]:
    """Those of each task: a planned file goes to the first that has rows for it, and none in its partition yet."""
    batches = Counter(partition_of(month, by_year=by_year) for task in plan.tasks for month in task.months)
    incoming = tuple(IncomingRows(partition, ROWS * count) for partition, count in sorted(batches.items()))
    found: list[dict[str, PlannedFile]] = [{} for _ in plan.tasks]
    for file in (await job.size(WorkloadProfile(incoming=incoming))).files:
        for task, files in zip(plan.tasks, found, strict=True):
            has_rows = any(partition_of(month, by_year=by_year) == file.partition for month in task.months)
            if has_rows and file.partition not in files:
                files[file.partition] = file
                break
    return [list(files.values()) for files in found]
