"""Progress of a running Spark job."""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession
from rich.console import Console

from tallymark.engine.jobs.write_job import WriteJob
from tallymark.spark_glue.progress_line import Line, Reading, line_for
from tallymark.spark_glue.written import Written

REFRESH_S = 0.5
"""Time between two readings: short enough for people, and each reading takes some calls to the JVM."""


@contextmanager
def shown_progress(session: SparkSession, job: WriteJob, *, wanted: bool | None) -> Iterator[Written | None]:
    """Show the progress during the block. ``wanted=None`` means on a terminal and in a notebook only.

    Yields the accumulator that tasks report to at their ends, or None if nothing is shown.
    """
    console = Console(stderr=True)
    if not (sys.stderr.isatty() or console.is_jupyter if wanted is None else wanted):
        yield None
        return
    written = Written(session)
    tag = f"tallymark-{job.instant}"
    ended = threading.Event()
    session.sparkContext.addJobTag(tag)
    with line_for(job.instant, console=console) as line:
        watch = _Watch(session, job, tag, written, line)
        watcher = threading.Thread(target=watch.until, args=(ended,), name="tallymark-progress", daemon=True)
        watcher.start()
        try:
            yield written
        finally:
            session.sparkContext.removeJobTag(tag)
            ended.set()
            watcher.join()


class _Watch:
    def __init__(self, session: SparkSession, job: WriteJob, tag: str, written: Written, line: Line) -> None:
        self._session = session
        self._job = job
        self._tag = tag
        self._written = written
        self._line = line
        self._started = time.monotonic()

    def until(self, ended: threading.Event) -> None:
        """Read and show until then, and once more. A failure of it does not affect the job."""
        is_last = False
        while not is_last:
            is_last = ended.wait(REFRESH_S)
            try:
                self._line.show(self._reading())
            except Exception:  # Spark is gone, or going: the job itself says more
                return

    def _reading(self) -> Reading:
        tasks, tasks_known = _tasks(self._session, self._tag)
        files, rows, size = self._written.so_far()
        return Reading(
            instant=self._job.instant,
            tasks=tasks,
            tasks_known=tasks_known,
            files=files,
            rows=rows,
            bytes=size,
            markers=self._job.marker_count,
            seconds=time.monotonic() - self._started,
        )


def _tasks(session: SparkSession, tag: str) -> tuple[int, int]:
    """Return completed and known tasks, over all stages of the tagged jobs except those that Spark skips."""
    tracker = session.sparkContext.statusTracker()
    tagged: Any = session.sparkContext._jsc.sc().statusTracker().getJobIdsForTag(tag)  # PySpark's own lacks this call
    done = total = 0
    for job_id in tagged:
        found = tracker.getJobInfo(job_id)
        has_later_started = False
        for stage_id in sorted(found.stageIds, reverse=True) if found else ():
            stage = tracker.getStageInfo(stage_id)
            if stage is None:
                continue
            has_started = stage.numCompletedTasks + stage.numActiveTasks > 0
            if has_started or not has_later_started:  # else an earlier job has done it
                done += stage.numCompletedTasks
                total += stage.numTasks
            has_later_started |= has_started
    return done, total
