"""Tallymark."""

import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from tallymark.bench.writes.case import WriteCase
from tallymark.bench.writes.order import Figures, Order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tallymark.engine.writes.result import WriteResult

FIGURES = ("files", "partitions", "removed_files", "markers", "marker_objects", "puts", "marker_wait_s")
"""What is kept of a result, as far as it has it."""


class Ours:
    jars = ()

    def __init__(self, markers: Literal["batched", "direct"] = "batched") -> None:
        self._markers = markers
        self.title = "Tallymark" if markers == "batched" else "Tallymark, direct markers"

    def conf(self, _scratch: Path) -> Mapping[str, str]:
        return {}

    def absence(self, case: WriteCase, _kind: str) -> str | None:
        if self._markers == "direct" and case.name != "small-files":
            return "its markers are what the small files measure"
        return None

    def write(self, df: "DataFrame", order: Order) -> Figures:
        from tallymark.engine.settings import TaskSettings
        from tallymark.spark_glue import write

        with _CommitTimes() as times:
            result = write(
                df,
                order.target,
                mode=order.mode,
                partition_by=order.partition_by,
                partition_overwrite=order.partition_overwrite if order.mode == "overwrite" else None,
                markers=self._markers,
                tasks=TaskSettings(compression=order.codec),  # type: ignore[arg-type]
                progress=False,
            )
        return {**_figures(result), **times.figures()}

    def row_count(self, session: "SparkSession", target: str) -> int:
        from tallymark.spark_glue import read

        return read(session, target).count()


def _figures(result: "WriteResult") -> Figures:
    return {name: getattr(result, name) for name in FIGURES if hasattr(result, name)}


class _CommitTimes(logging.Handler):
    """When the log of the table had the entry, as the library's own log says; from then on the rows are there."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._logger = logging.getLogger("tallymark.engine.writes.write_job")
        self._level = self._logger.level
        self._committed: float | None = None
        self._ended: float | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if str(record.msg).startswith("instant.committed"):
            self._committed = time.perf_counter()

    def figures(self) -> Figures:
        if self._committed is None or self._ended is None:
            return {}
        return {"after_commit_s": self._ended - self._committed}

    def __enter__(self) -> Self:
        self._logger.addHandler(self)
        self._logger.setLevel(logging.INFO)
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = time.perf_counter()
        self._logger.removeHandler(self)
        self._logger.setLevel(self._level)
