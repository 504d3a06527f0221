"""A line on the terminal while Spark's tasks run."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tallymark.engine.writes.write_job import WriteJob

REFRESH_S = 0.5


@contextmanager
def shown_progress(session: SparkSession, job: WriteJob, *, wanted: bool | None) -> Iterator[None]:
    """Show tasks done and markers acked for the time of the block; ``wanted=None`` means on a terminal only."""
    if not (sys.stderr.isatty() if wanted is None else wanted):
        yield
        return
    tag = f"tallymark-{job.instant}"
    ended = threading.Event()
    session.sparkContext.addJobTag(tag)
    watcher = threading.Thread(target=_watch, args=(session, job, tag, ended), name="tallymark-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        session.sparkContext.removeJobTag(tag)
        ended.set()
        watcher.join()


def _watch(session: SparkSession, job: WriteJob, tag: str, ended: threading.Event) -> None:
    columns = (
        TextColumn("tallymark {task.fields[instant]}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("tasks, {task.fields[markers]} markers"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        line = progress.add_task("", total=None, instant=job.instant, markers=0)
        while True:
            is_last = ended.wait(REFRESH_S)
            done, total = _tasks(session, tag)
            progress.update(line, completed=done, total=total or None, markers=job.marker_count)
            if is_last:
                return


def _tasks(session: SparkSession, tag: str) -> tuple[int, int]:
    """Tasks completed, and tasks known so far, over all stages of the tagged jobs."""
    tracker = session.sparkContext.statusTracker()
    tagged: Any = session.sparkContext._jsc.sc().statusTracker().getJobIdsForTag(tag)  # PySpark's own lacks this call
    done = total = 0
    for job_id in tagged:
        found = tracker.getJobInfo(job_id)
        for stage_id in found.stageIds if found else ():
            stage = tracker.getStageInfo(stage_id)
            if stage is not None:
                done += stage.numCompletedTasks
                total += stage.numTasks
    return done, total
