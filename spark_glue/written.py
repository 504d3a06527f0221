"""Files and rows written by finished tasks, as the driver learns of them while others run."""

from pyspark import Accumulator
from pyspark.sql import SparkSession

from tallymark.engine.tasks.report import TaskReport


class Written:
    """Files, rows and bytes, by Spark's own accumulators: they travel with the end of a task, whatever marks files.

    Spark counts each task once, whichever of its attempts wins, and those that fail not at all. What a task has written
    before its end the driver does not know. What is committed, the reports say, and nothing here.
    """

    def __init__(self, session: SparkSession) -> None:
        context = session.sparkContext
        self._counts: tuple[Accumulator[int], ...] = tuple(context.accumulator(0) for _ in range(3))

    def add(self, report: TaskReport) -> None:
        """In the task, at its end."""
        numbers = (len(report.files), report.rows, sum(file.bytes for file in report.files))
        for count, number in zip(self._counts, numbers, strict=True):
            count.add(number)

    def so_far(self) -> tuple[int, int, int]:
        """In the driver: files, rows, bytes."""
        files, rows, size = (count.value for count in self._counts)
        return files, rows, size
