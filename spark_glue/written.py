"""Files and rows written by finished tasks, as the driver learns of them while others run."""

from pyspark import Accumulator
from pyspark.sql import SparkSession

from tallymark.engine.tasks.report import TaskReport


class Written:
    """Files, rows and bytes, by Spark's accumulators, which travel with the end of a task, whatever kind the markers
    are.

    Spark counts each task once, whichever of its attempts wins, and failed ones not at all. The driver does not learn
    what a task has written before its end. The commit depends on the reports, not on these counts.
    """

    def __init__(self, session: SparkSession) -> None:
        context = session.sparkContext
        self._counts: tuple[Accumulator[int], ...] = tuple(context.accumulator(0) for _ in range(3))

    def add(self, report: TaskReport) -> None:
        """Add the task's counts at its end. Runs in the task."""
        numbers = (len(report.files), report.rows, sum(file.bytes for file in report.files))
        for count, number in zip(self._counts, numbers, strict=True):
            count.add(number)

    def so_far(self) -> tuple[int, int, int]:
        """Return files, rows and bytes. Runs in the driver."""
        files, rows, size = (count.value for count in self._counts)
        return files, rows, size
