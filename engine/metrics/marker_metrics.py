"""What the marker directories of this process count, under the names of ``prometheus.METRICS``."""

import re

from tallymark.engine.markers.process_markers import ProcessReading
from tallymark.engine.metrics.job_meter import Reading

_WORD_START = re.compile(r"(?<!^)(?=[A-Z])")


def marker_metrics(found: ProcessReading) -> Reading:
    counts = found.counts
    reading = Reading(
        histograms={
            "marker_ack_seconds": found.acks,
            "marker_put_seconds": counts.put_times,
            "marker_batch_size": counts.batch_sizes,
        }
    )
    reading.add(
        {
            ("markers", "batched"): counts.markers - counts.direct_markers,
            ("markers", "direct"): counts.direct_markers,
            ("markers_waiting",): found.waiting,
            ("markers_inflight",): found.inflight,
            ("marker_requests",): counts.requests,
            ("marker_batches_failed",): counts.batches_failed,
            ("marker_puts",): counts.puts,
            ("marker_put_bytes",): counts.put_bytes,
            ("marker_bytes",): counts.marker_bytes,
            ("marker_hedges",): counts.hedges,
            ("marker_hedges_won",): counts.hedges_won,
            ("marker_throttles",): counts.throttled,
            ("marker_merges", "merged"): counts.merges,
            ("marker_merges", "failed"): counts.merges_failed,
            ("marker_merged_segments",): counts.merged_segments,
            ("marker_segments",): found.segments,
            ("marker_interval_seconds",): found.interval_s,
            ("marker_late_seconds",): found.late_s,
        }
    )
    reading.add({("marker_refusals", _word(error)): count for error, count in counts.refusals_by.items()})
    return reading


def _word(error: str) -> str:
    """``RolledBack`` as a label's value is ``rolled_back``."""
    return _WORD_START.sub("_", error).lower()
