"""The write jobs of this process as Prometheus metrics, made when they are scraped: jobs only count."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import accumulate
from typing import TYPE_CHECKING, Literal, NamedTuple

from tallymark.engine.errors import MissingExtra
from tallymark.engine.markers.ack_times import ACK_BOUNDS_S, AckTimes
from tallymark.engine.writes.job_meter import Reading
from tallymark.engine.writes.process_meter import PROCESS

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import Metric as Family


class Metric(NamedTuple):
    """One family, as docs/operating.md lists them."""

    name: str
    """As jobs count it: without the prefix, and without ``_total``, which a counter's samples end in."""
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
    Metric("rewritten_bytes", "counter", (), "Bytes of those small files"),
    Metric("lost_fills", "counter", (), "Small files that were filled in vain: another write had replaced them"),
    Metric("markers", "counter", ("kind",), "Markers: batched ones of all jobs, direct ones of committed jobs"),
    Metric("marker_ack_seconds", "histogram", (), "From a request for markers to its ack, in the service"),
    Metric("look_ups", "counter", (), "Requests of tasks to the service that asked what partitions hold"),
    Metric("storage_requests", "counter", ("class", "outcome"), "Requests to storage while jobs ran"),
    Metric("storage_retries", "counter", (), "Of those requests, repeats of earlier ones"),
    Metric("conflicts", "counter", (), "Commits that another write excluded"),
    Metric("rollbacks", "counter", (), "Instants that were rolled back: failed jobs and those of dead writers"),
    Metric("cleans", "counter", (), "Calls of clean that were completed"),
)


def register_metrics(registry: "CollectorRegistry | None" = None) -> None:
    """Let a registry, prometheus-client's default one unless another is given, show what this process's jobs do.

    To be called once, before or after the first job; a second call does nothing. What is shown counts from the start of
    the process.

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
    """What a registry asks at each scrape, from whatever thread."""

    def describe(self) -> "Iterator[Family]":
        """Their names, which a registry wants once."""
        return self._families(Reading())

    def collect(self) -> "Iterator[Family]":
        return self._families(PROCESS.reading())

    def _families(self, reading: Reading) -> "Iterator[Family]":
        for metric in METRICS:
            yield _histogram(metric, reading.acks) if metric.kind == "histogram" else _counted(metric, reading)


def _counted(metric: Metric, reading: Reading) -> "Family":
    """With labels, those that occurred; without, a value always, so that the first of its kind is seen to rise."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    kind = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = kind(f"tallymark_{metric.name}", metric.help, labels=metric.labels)
    values = {key[1:]: value for key, value in reading.counts.items() if key[0] == metric.name}
    if not metric.labels:
        values.setdefault((), 0)
    for labels, value in sorted(values.items()):
        family.add_metric(labels, value)
    return family


def _histogram(metric: Metric, times: AckTimes) -> "Family":
    from prometheus_client.core import HistogramMetricFamily

    bounds = [*map(str, ACK_BOUNDS_S), "+Inf"]
    buckets = list(zip(bounds, accumulate(times.counts), strict=True))
    return HistogramMetricFamily(f"tallymark_{metric.name}", metric.help, buckets=buckets, sum_value=times.total_s)
