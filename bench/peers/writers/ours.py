"""Tallymark."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self

from tallymark.bench.writes.case import WriteCase
from tallymark.bench.writes.order import PLAN_ERROR, Figures, FileSizes, Order

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tallymark.engine.jobs.result import WriteResult
    from tallymark.engine.settings import SizingSettings

FIGURES = ("files", "partitions", "removed_files", "markers", "marker_objects", "puts")
"""What is kept of a result."""


class Ours:
    jars = ()
    sparks = ()

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
        from tallymark.spark_glue.write import write

        with _JobLog() as log:
            result = write(
                df,
                order.target,
                mode=order.mode,
                partition_by=order.partition_by,
                partition_overwrite=order.partition_overwrite if order.mode == "overwrite" else "static",
                record_key=order.record_key,
                order_by=order.order_by,
                unique_in=None if order.record_key is None else "partition",
                readers=None if order.record_key is None else "table",
                markers=self._markers,
                tasks=TaskSettings(compression=order.codec),  # type: ignore[arg-type]
                sizing=_sizing(order.sizes),
                progress=False,
            )
        return {**_figures(result), **log.figures()}

    def read(self, session: "SparkSession", target: str) -> "DataFrame":
        from tallymark.spark_glue.read import read

        return read(session, target)


def _sizing(sizes: FileSizes | None) -> "SizingSettings | None":
    from tallymark.engine.settings import SizingSettings

    if sizes is None:
        return None
    if sizes.policy == "off":
        return SizingSettings(max_file_bytes=sizes.max_file_bytes, small_file_bytes=0)
    return SizingSettings(
        max_file_bytes=sizes.max_file_bytes, small_file_bytes=sizes.small_file_bytes, policy=sizes.policy
    )


def _figures(result: "WriteResult") -> Figures:
    figures: dict[str, float | str] = {name: getattr(result, name) for name in FIGURES}
    if result.sizing is not None and result.sizing.size_error_p95 is not None:
        figures[PLAN_ERROR] = result.sizing.size_error_p95
    return figures


class _JobLog(logging.Handler):
    """What the library's own log says of the job's phases."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._logger = logging.getLogger("tallymark.engine")
        self._level = self._logger.level
        self._events: dict[str, dict[str, float]] = {}
        self._at: dict[str, float] = {}

    def emit(self, record: logging.LogRecord) -> None:
        event = getattr(record, "event", "")
        self._events[event] = getattr(record, "fields", {})
        self._at[event] = record.created

    def figures(self) -> Figures:
        committed, deleted = self._events["instant.committed"], self._events["markers.deleted"]
        return {
            "marker_wait_s": committed["marker_wait_s"],
            "commit_s": committed["seconds"],
            "marker_deletion_s": deleted["seconds"],
            "after_commit_s": self._at["instant.finished"] - self._at["instant.committed"],
        }

    def __enter__(self) -> Self:
        self._logger.addHandler(self)
        self._logger.setLevel(logging.INFO)
        return self

    def __exit__(self, *_: object) -> None:
        self._logger.removeHandler(self)
        self._logger.setLevel(self._level)
