"""Prometheus bridge: metrics of this process's jobs and marker engines, collected at each scrape."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import accumulate
from typing import TYPE_CHECKING, Literal, NamedTuple

from tallymark.engine.errors import MissingExtra
from tallymark.engine.markers.histogram import Histogram
from tallymark.engine.markers.process_markers import PROCESS_MARKERS, ProcessReading
from tallymark.engine.metrics.registry import PROCESS, Reading, marker_metrics

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric as Family


class Metric(NamedTuple):
    """One metric family, as docs/operating.md lists them."""

    name: str
    """The name that jobs use: without the prefix, and without the ``_total`` of a counter's samples."""
    kind: Literal["counter", "gauge", "histogram"]
    labels: tuple[str, ...]
    help: str

    @property
    def full_name(self) -> str:
        return f"tallymark_{self.name}" + ("_total" if self.kind == "counter" else "")


METRICS = (
    Metric("jobs", "counter", ("operation", "outcome"), "Write jobs that have ended"),
    Metric("jobs_running", "gauge", (), "Write jobs that run now"),
    Metric("tasks", "counter", (), "Tasks of committed jobs"),
    Metric("task_seconds", "counter", (), "Seconds that those tasks took"),
    Metric("task_marker_wait_seconds", "counter", (), "Of those, seconds in which a task stood still for markers"),
    Metric("committed_files", "counter", (), "Files of committed jobs"),
    Metric("committed_rows", "counter", (), "Rows of those files"),
    Metric("committed_bytes", "counter", (), "Bytes of those files"),
    Metric("replaced_files", "counter", (), "Files that commits replaced"),
    Metric("filled_files", "counter", (), "Of those, small files whose rows appends have written once more"),
    Metric("rewritten_bytes", "counter", (), "Bytes of files whose rows fills, upserts and deletes wrote once more"),
    Metric("lost_fills", "counter", (), "Small-file fills lost to a concurrent commit"),
    Metric("changed_rows", "counter", ("outcome",), "Rows that upserts and deletes have changed or ignored"),
    Metric("looked_up_bytes", "counter", (), "Bytes of files that may have had their keys"),
    Metric("markers", "counter", ("kind",), "Markers: those of engines, and of committed jobs what tasks have put"),
    Metric("marker_requests", "counter", (), "Requests for markers, of one or several each"),
    Metric("marker_refusals", "counter", ("reason",), "Of those, refused ones"),
    Metric("marker_ack_seconds", "histogram", (), "From a request for markers to its ack, in the service"),
    Metric("markers_waiting", "gauge", (), "Markers that wait for a flush"),
    Metric("markers_inflight", "gauge", (), "Markers in a flush"),
    Metric("marker_batch_size", "histogram", (), "Markers in a flush that has succeeded"),
    Metric("marker_batches_failed", "counter", (), "Flushes that storage did not take"),
    Metric("marker_put_seconds", "histogram", (), "From sending a segment or a direct marker to storage's answer"),
    Metric("marker_puts", "counter", (), "Puts of segments and direct markers, repeats and merges included"),
    Metric("marker_put_bytes", "counter", (), "Bytes of those puts"),
    Metric("marker_bytes", "counter", (), "Bytes of markers in segments, each once, with the first line of each flush"),
    Metric("marker_hedges", "counter", (), "Of those puts, second copies of late ones"),
    Metric("marker_hedges_won", "counter", (), "Of those second copies, the ones that were answered first"),
    Metric(
        "marker_throttles",
        "counter",
        (),
        "Times that the interval was lengthened since the store asked for fewer requests",
    ),
    Metric("marker_merges", "counter", ("outcome",), "Merges of segments"),
    Metric("marker_merged_segments", "counter", (), "Segments that merges have replaced"),
    Metric("marker_segments", "gauge", (), "Segments that hold the markers of the instants that are served"),
    Metric("marker_interval_seconds", "gauge", (), "The least time between the starts of two flushes"),
    Metric("marker_late_seconds", "gauge", (), "How long a put may take before a second copy is sent"),
    Metric("look_ups", "counter", (), "Requests of tasks to the service that asked what partitions hold"),
    Metric("storage_requests", "counter", ("class", "outcome"), "Requests to storage while jobs ran"),
    Metric("storage_retries", "counter", (), "Of those requests, repeats of earlier ones"),
    Metric("conflicts", "counter", (), "Commits that another write excluded"),
    Metric("rollbacks", "counter", (), "Instants that were rolled back: failed jobs and those of dead writers"),
    Metric("cleans", "counter", (), "Calls of clean that were completed"),
)


def register_metrics(registry: "CollectorRegistry | None" = None) -> None:
    """Register this process's metrics with a registry, by default prometheus-client's: those of its jobs and its marker
    engines, including engines that serve no table.

    To be called once, before or after the first of them; a second call does nothing. Values count from the start of the
    process.

    Raises:
        MissingExtra: prometheus-client is not installed.
    """
    try:
        from prometheus_client import REGISTRY
    except ImportError as error:
        raise MissingExtra("prometheus-client is not installed: pip install 'tallymark[prometheus]'") from error
    with suppress(ValueError):  # these names are in the registry, by an earlier call
        (REGISTRY if registry is None else registry).register(_Collector())


class _Collector:
    """Collector that a registry calls at each scrape, from any thread."""

    def describe(self) -> "Iterator[Family]":
        """Return the names, which a registry requests once."""
        return self._families(marker_metrics(ProcessReading()))

    def collect(self) -> "Iterator[Family]":
        reading = marker_metrics(PROCESS_MARKERS.reading())
        reading.add(PROCESS.reading().counts)
        return self._families(reading)

    def _families(self, reading: Reading) -> "Iterator[Family]":
        for metric in METRICS:
            yield (
                _histogram(metric, reading.histograms[metric.name])
                if metric.kind == "histogram"
                else _counted(metric, reading)
            )


def _counted(metric: Metric, reading: Reading) -> "Family":
    """Return the samples: with labels, those that occurred; without, always a value, so that its first increase is
    seen.
    """
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = kind(f"tallymark_{metric.name}", metric.help, labels=metric.labels)
    values = {key[1:]: value for key, value in reading.counts.items() if key[0] == metric.name}
    if not metric.labels:
        values.setdefault((), 0)
    for labels, value in sorted(values.items()):
        family.add_metric(labels, value)
    return family


def _histogram(metric: Metric, found: Histogram) -> "Family":
    from prometheus_client.core import HistogramMetricFamily

    bounds = [*map(str, found.bounds), "+Inf"]
    buckets = list(zip(bounds, accumulate(found.counts), strict=True))
    return HistogramMetricFamily(f"tallymark_{metric.name}", metric.help, buckets=buckets, sum_value=found.total)
