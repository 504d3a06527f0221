"""Settings are values: frozen, printable, and checked when made."""

import dataclasses
import math

import pytest

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.settings import (
    CommitSettings,
    LeaseSettings,
    MarkerSettings,
    ServiceSettings,
    SizingSettings,
    TaskSettings,
    ViewSettings,
)

ALL = [MarkerSettings, LeaseSettings, TaskSettings, SizingSettings, ServiceSettings, ViewSettings, CommitSettings]

UNCHECKED = {("ServiceSettings", "advertised_host"), ("ViewSettings", "folder")}
"""Any text may be a name that tasks resolve, or a folder."""

CASES: list[tuple[type, str, list[object]]] = [
    (MarkerSettings, "kind", ["", "timeline", None]),
    (MarkerSettings, "interval_s", [-0.001, "fast", None, math.nan, True]),
    (MarkerSettings, "throttled_interval_s_max", [0, -1, "5", math.nan]),
    (MarkerSettings, "worker_count", [0, -1, 1.5, True, "20"]),
    (MarkerSettings, "queue_limit", [0, 0.5]),
    (MarkerSettings, "flush_timeout_s", [0, -1, "30", math.nan]),
    (MarkerSettings, "flush_attempt_count", [0]),
    (MarkerSettings, "flush_retry_pause_s", [-1, "1"]),
    (MarkerSettings, "load_concurrency", [0]),
    (MarkerSettings, "hedge_quantile", [0.49, 1, "0.95", math.nan, True]),
    (MarkerSettings, "hedge_ratio_max", [-0.1, None]),
    (MarkerSettings, "segment_count_max", [0, 1.5]),
    (MarkerSettings, "merge_freed_min", [0, "16"]),
    (MarkerSettings, "merge_bytes_ratio_max", [0.5, None, math.nan, math.inf]),
    (MarkerSettings, "merge_memory_bytes", [-1, 0.5]),
    (LeaseSettings, "heartbeat_interval_s", [0, -1, "10"]),
    (LeaseSettings, "expiry_s", [0, 39.9, "120", math.nan]),
    (SizingSettings, "max_file_bytes", [0, -1, 1.5]),
    (SizingSettings, "small_file_bytes", [-1, 1.5, 120 * 1024 * 1024 + 1]),
    (SizingSettings, "insert_split_rows", [0, -1, 1.5, "", None]),
    (SizingSettings, "rewrite_budget", [-1, "8", None, float("nan")]),
    (SizingSettings, "policy", ["", "Hudi", None]),
    (TaskSettings, "row_group_bytes", [0]),
    (TaskSettings, "buffer_bytes", [0]),
    (TaskSettings, "open_file_count", [0]),
    (TaskSettings, "compression", ["", "brotli", None]),
    (TaskSettings, "marker_wait_s", [0]),
    (TaskSettings, "fallback", [None, 1, "no"]),
    (TaskSettings, "service_wait_s", [0, -1, "20"]),
    (TaskSettings, "service_pause_s", [-1, "30"]),
    (TaskSettings, "publish_count", [0]),
    (TaskSettings, "publish_bytes", [0]),
    (TaskSettings, "publish_attempt_count", [0, 1.5]),
    (TaskSettings, "publish_pause_s", [-1, "1"]),
    (ViewSettings, "store", ["", "rocksdb", None]),
    (ViewSettings, "memory_bytes", [0, 1.5]),
    (ViewSettings, "serve", [1, None, "no"]),
    (ViewSettings, "incremental", [1, None, "no"]),
    (ViewSettings, "preload", [1, None, "no"]),
    (ViewSettings, "keep_positions", [-1, 0.5]),
    (ViewSettings, "checkpoint_entries", [0, None]),
    (ViewSettings, "checkpoint_timeout_s", [0, -1, None]),
    (ViewSettings, "wait_s", [0, -1, "5"]),
    (ViewSettings, "cache_bytes", [-1, 0.5]),
    (ViewSettings, "log_wait_s", [0, -1, "60"]),
    (ViewSettings, "log_readings", [0, 1.5]),
    (ViewSettings, "log_jitter_s", [-1, "1"]),
    (ServiceSettings, "host", ["", None, 5]),
    (ServiceSettings, "port", [-1, 65536, "8080", 1.5]),
    (ServiceSettings, "connection_count", [0]),
    (ServiceSettings, "frame_bytes", [1023]),
    (ServiceSettings, "handshake_bytes", [255]),
    (ServiceSettings, "handshake_timeout_s", [0]),
    (ServiceSettings, "handshake_count", [0]),
    (ServiceSettings, "inflight_count", [0]),
    (ServiceSettings, "send_timeout_s", [0]),
    (CommitSettings, "decision_timeout_s", [0]),
    (CommitSettings, "retry_pause_s", [-0.1, "1", math.nan]),
    (CommitSettings, "end_timeout_s", [0]),
    (CommitSettings, "concurrency", [0]),
    (CommitSettings, "clean_overdue_ratio", [-0.1, "1/24", math.nan]),
    (CommitSettings, "zombie_after_s", [-1, "24h"]),
    (CommitSettings, "log_entry_count", [0, 1.5, True]),
    (CommitSettings, "timeline_commit_count", [0, None]),
]


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        pytest.param(kind, name, value, id=f"{kind.__name__}-{name}-{value!r}")
        for kind, name, values in CASES
        for value in values
    ],
)
def test_a_bad_value_is_refused_with_its_name_and_the_rule(kind, name, value):
    with pytest.raises(InvalidRequest) as caught:
        kind(**{name: value})
    assert f"setting {name}={value!r}: {name} is " in str(caught.value)


def test_every_setting_is_checked():
    fields = {(kind.__name__, field.name) for kind in ALL for field in dataclasses.fields(kind)}
    assert {(kind.__name__, name) for kind, name, _ in CASES} | UNCHECKED == fields


@pytest.mark.parametrize("kind", ALL)
def test_the_defaults_hold_are_frozen_and_print_themselves(kind):
    made = kind()
    assert made == kind()
    assert f"{kind.__name__}(" in repr(made)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(made, dataclasses.fields(kind)[0].name, 1)


def test_the_edges_of_what_is_allowed():
    assert MarkerSettings(interval_s=0, worker_count=1, queue_limit=1, kind="direct").interval_s == 0
    assert MarkerSettings(hedge_quantile=None, hedge_ratio_max=0, merge_bytes_ratio_max=1).hedge_quantile is None
    assert LeaseSettings(heartbeat_interval_s=1, expiry_s=4).expiry_s == 4
    assert ServiceSettings(port=65535, frame_bytes=1024, handshake_bytes=256).port == 65535
    assert TaskSettings(service_pause_s=0, fallback=False).service_pause_s == 0
    assert CommitSettings(retry_pause_s=0, zombie_after_s=0).zombie_after_s == 0


def test_at_least_half_of_the_patience_for_a_marker_is_left_for_the_tasks_own_put():
    assert TaskSettings().service_patience_s == 20
    assert TaskSettings(marker_wait_s=5).service_patience_s == 2.5
    assert TaskSettings(service_wait_s=1).service_patience_s == 1
