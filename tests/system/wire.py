"""Requests that went over the wire to an S3 server, by class."""

from collections.abc import Mapping
from typing import get_args

from tallymark.backends import Backend
from tallymark.backends.meter import RequestClass, RequestStatistics
from tallymark.engine.settings import LeaseSettings, MarkerSettings

SELDOM = LeaseSettings(heartbeat_interval_s=300, expiry_s=1200)
"""No beat in the time of a test: one more put and get every ten seconds."""

ONE_FLUSH = MarkerSettings(worker_count=1, hedge_quantile=None, merge_bytes_ratio_max=1)
"""Of markers no put beside the one that each flush needs."""


def requests(backend: Backend) -> Mapping[str, int]:
    """So far, by class. A bulk delete of S3 is a POST, and stands for a delete here."""
    statistics: RequestStatistics = backend.statistics()  # type: ignore[attr-defined]
    count = {name: statistics.of(name).count for name in get_args(RequestClass)}
    return {
        **{name: count[name] for name in ("put", "head", "list")},
        "get": count["get"] + count["get_range"],
        "delete": count["delete"] + count["post"],
    }


def between(before: Mapping[str, int], after: Mapping[str, int]) -> Mapping[str, int]:
    return {name: after[name] - before[name] for name in after}
