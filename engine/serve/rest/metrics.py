"""Figures of the tables that a scraper's token covers, for Prometheus."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from tallymark.engine.documents.summary import SummaryDocument

GAUGES = (
    ("files", "Files of the table."),
    ("rows", "Rows of the table."),
    ("bytes", "Bytes of its files."),
    ("partitions", "Partitions that contain files."),
    ("small_files", "Files below 100 MiB."),
    ("retained_files", "Replaced files that are still retained."),
    ("retained_bytes", "Bytes of these files."),
    ("open_instants", "Jobs that are writing the table, or have left something."),
    ("dead_writers", "Of these, jobs whose writer is dead."),
    ("position", "Position of the newest entry of the commit log."),
)


class _Summaries(Collector):
    def __init__(self, summaries: Sequence[SummaryDocument]) -> None:
        self._summaries = summaries

    def collect(self) -> Iterator[Metric]:
        readable = GaugeMetricFamily("tallymark_table_readable", "1 if the table can be read.", labels=["table"])
        for summary in self._summaries:
            readable.add_metric([summary["url"]], float(summary["error"] is None))
        yield readable
        for name, text in GAUGES:
            gauge = GaugeMetricFamily(f"tallymark_table_{name}", text, labels=["table"])
            for summary in self._summaries:
                value: object = summary[name]  # type: ignore[literal-required]
                if isinstance(value, int):
                    gauge.add_metric([summary["url"]], value)
            yield gauge
        committed = GaugeMetricFamily(
            "tallymark_table_newest_entry_seconds",
            "When the newest entry was put, in seconds since 1970.",
            labels=["table"],
        )
        for summary in self._summaries:
            if summary["newest_entry"] is not None:
                committed.add_metric([summary["url"]], datetime.fromisoformat(summary["newest_entry"]).timestamp())
        yield committed


def exposition(summaries: Sequence[SummaryDocument]) -> bytes:
    """Return the figures in the text format of Prometheus."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Summaries(summaries))
    return generate_latest(registry)
