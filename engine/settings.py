"""Settings classes: every limit, timeout and default, each with its reason. Frozen values, checked when made."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tallymark.engine.errors import InvalidRequest
from tallymark.engine.setting_checks import (
    check,
    check_above_zero,
    check_at_least,
    check_not_negative,
    is_count,
    is_loopback,
    is_number,
)

MarkerKind = Literal["batched", "direct"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerSettings:
    """Settings of the marker engine. The corresponding Hudi keys are in brackets."""

    kind: MarkerKind = "batched"
    """``batched``: many markers in one segment. ``direct``: one object per marker, without a service.
    [hoodie.write.markers.type]"""
    interval_s: float | Literal["auto"] = "auto"
    """Least time between the starts of two flushes of one marker directory, on average. A start counts from its due
    time; timers move it by up to 2 ms. ``auto`` is a quarter of the measured put time: a mean ack takes at most
    1.125 puts, with at most 4 flushes started per put time. Where the median put takes less than 5 ms, one flush runs
    at a time: concurrent ones would delay each other.
    [hoodie.markers.timeline_server_based.batch.interval_ms]"""
    throttled_interval_s_max: float = 5.0
    """Longest interval under throttling: each time the store requests fewer requests, the interval grows by half, up
    to this value, and batches grow with it. A twelfth of a task's wait for its ack (``TaskSettings.marker_wait_s``)."""
    worker_count: int = 20
    """Maximum flushes in flight: enough for ``auto`` when a put takes five times its mean.
    [hoodie.markers.timeline_server_based.batch.num_threads]"""
    queue_limit: int = 100_000
    """Maximum markers waiting or in flight per directory: about 75 MB if they arrived over the wire. Further
    requests are refused as Overloaded, with the time after which to retry."""
    flush_timeout_s: float = 30.0
    """Time limit for one put of a segment before it is retried: ten times a slow store's 99.9th percentile, and
    longer than the store's own retries (``RetrySettings.timeout_s``, 20 s), so that the store's error is reported."""
    flush_attempt_count: int = 4
    """Puts of one segment before its requests fail. A retry has the same name and bytes, so it is harmless."""
    flush_retry_pause_s: float = 0.1
    """Pause before the first retry; before the n-th retry it is n times as long. Gives a throttling store time to
    recover."""
    load_concurrency: int = 32
    """Segments read concurrently when a directory is loaded, so that round trips of 100 ms do not add up."""
    hedge_quantile: float | None = 0.95
    """A put is sent a second time once it takes longer than this quantile of recent puts, than two of their medians
    and than 50 ms; the first response counts. None: never. Puts are not hedged either where half of them take less
    than 5 ms."""
    hedge_ratio_max: float = 0.1
    """Maximum second copies as a share of all puts; at most 2 can be saved up. More copies would slow down a store
    that is slow as a whole."""
    segment_count_max: int = 20
    """Segments in a directory before any are merged: as many objects as Hudi's server writes to."""
    merge_freed_min: int = 8
    """Least number of objects that a merge frees; a merge adds at most one put per this many flushes. With 8, up to
    4,000 flushes leave at most 20 objects. With 16, a third fewer merges run and up to 36 objects remain."""
    merge_bytes_ratio_max: float = 4.0
    """Maximum bytes written per byte of markers, merges included; 1 turns merges off. With 4, about 50 objects store
    46,000 flushes. Each further 1 rewrites each marker once more and leaves fewer objects in a long job."""
    merge_memory_bytes: int = 4 * 1024 * 1024
    """Bytes of recent segments that a directory keeps in memory until they are merged; older segments are read back.
    About 50,000 markers, a fraction of the memory of their names."""

    def __post_init__(self) -> None:
        check(self.kind in ("batched", "direct"), "kind", self.kind, "is 'batched' or 'direct'")
        check(
            self.interval_s == "auto" or is_number(self.interval_s, least=0),
            "interval_s",
            self.interval_s,
            "is 'auto' or a number of seconds, 0 or more",
        )
        check_above_zero("throttled_interval_s_max", self.throttled_interval_s_max)
        check_at_least(1, "worker_count", self.worker_count)
        check_at_least(1, "queue_limit", self.queue_limit)
        check_above_zero("flush_timeout_s", self.flush_timeout_s)
        check_at_least(1, "flush_attempt_count", self.flush_attempt_count)
        check_not_negative("flush_retry_pause_s", self.flush_retry_pause_s)
        check_at_least(1, "load_concurrency", self.load_concurrency)
        check(
            self.hedge_quantile is None or (is_number(self.hedge_quantile, least=0.5) and self.hedge_quantile < 1),
            "hedge_quantile",
            self.hedge_quantile,
            "is None or a number from 0.5 to below 1",
        )
        check_not_negative("hedge_ratio_max", self.hedge_ratio_max)
        check_at_least(1, "segment_count_max", self.segment_count_max)
        check_at_least(1, "merge_freed_min", self.merge_freed_min)
        check(
            is_number(self.merge_bytes_ratio_max, least=1) and self.merge_bytes_ratio_max <= 100,
            "merge_bytes_ratio_max",
            self.merge_bytes_ratio_max,
            "is a number between 1 and 100",
        )
        check_at_least(0, "merge_memory_bytes", self.merge_memory_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSettings:
    """Settings of the leases of writers, and of readers that protect files from cleans.

    Hudi: hoodie.client.heartbeat.interval_in_ms (60 s) and .tolerable.misses (10).
    """

    heartbeat_interval_s: float = 10.0
    """Time between two heartbeats. Each costs one small put and one read of the commit log's tail."""
    expiry_s: float = 120.0
    """A writer is treated as dead once its heartbeat is this much older than a fresh one. Twelve missed heartbeats
    outlast a bad minute of the store and a long pause of the process. Until then a crashed writer on another host
    delays no other writer; its files remain."""

    def __post_init__(self) -> None:
        check_above_zero("heartbeat_interval_s", self.heartbeat_interval_s)
        check(
            is_number(self.expiry_s, least=4 * self.heartbeat_interval_s),
            "expiry_s",
            self.expiry_s,
            "is at least four heartbeat intervals",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSettings:
    """Settings of a task's file writer. Sent to tasks in the ticket."""

    row_group_bytes: int = 64 * 1024 * 1024
    """Arrow bytes of one partition that are buffered before they are encoded: enough for efficient encodings."""
    buffer_bytes: int = 256 * 1024 * 1024
    """Maximum Arrow bytes that a task buffers for all its partitions; above it, the fullest partition is encoded
    early."""
    open_file_count: int = 500
    """Maximum open files per task, beside those that are being published; above it, the file idle for the longest time
    is finished. Half of the usual limit of 1,024."""
    compression: Literal["zstd", "snappy", "lz4", "gzip", "none"] = "zstd"
    """Parquet codec: zstd files are a third smaller than snappy's for a few percent of CPU."""
    marker_wait_s: float = 60.0
    """Time limit for a marker's ack, reconnects included, after which the task fails. Twice the time limit of one put
    of a segment (``MarkerSettings.flush_timeout_s``), so that one put without an answer fails no task."""
    fallback: bool = True
    """Whether a task that cannot reach the service puts its markers itself, one object each. The same rules apply to
    them, and each costs one put. With False such a task fails after ``marker_wait_s``."""
    service_wait_s: float = 20.0
    """Time a task waits for the service before it falls back; at most half of ``marker_wait_s``, which leaves time
    for the task's own put. Allows three connection attempts of five seconds each and a slow store's put."""
    service_pause_s: float = 30.0
    """Interval at which a process retries an unreachable service. No task waits for these retries."""
    publish_count: int = 16
    """Maximum files per task that are being published while the next ones are encoded, each in a thread. At 30 ms per
    put, 150 small files take 0.3 s instead of 4.5 s, which is less than their encoding. With more, the tasks of a job
    would only be throttled earlier by their store."""
    publish_bytes: int = 128 * 1024 * 1024
    """Maximum bytes of these files; a larger one is published alone. Enough for ``publish_count`` files of the size
    that an object store keeps in memory (``StorageOptions.spool_memory_bytes``), or for one of the default
    ``SizingSettings.max_file_bytes``: its put needs no others to use the bandwidth."""
    publish_attempt_count: int = 4
    """Maximum names under which one file is put to an object store that does not report the outcome of the previous
    put. If 5 of 100 puts fail so, 6 files in a million use up all names. Each name costs one more marker and
    possibly a fence."""
    publish_pause_s: float = 1.0
    """Pause before the second of these names; before the n-th name it is n - 1 times as long. A connection that a
    load balancer reset succeeds at once; a throttling store gets some seconds."""

    @property
    def service_patience_s(self) -> float:
        """The effective ``service_wait_s``."""
        return min(self.service_wait_s, self.marker_wait_s / 2)

    def __post_init__(self) -> None:
        check_at_least(1, "row_group_bytes", self.row_group_bytes)
        check_at_least(1, "buffer_bytes", self.buffer_bytes)
        check_at_least(1, "open_file_count", self.open_file_count)
        check(
            self.compression in ("zstd", "snappy", "lz4", "gzip", "none"),
            "compression",
            self.compression,
            "is one of zstd, snappy, lz4, gzip, none",
        )
        check_above_zero("marker_wait_s", self.marker_wait_s)
        check(isinstance(self.fallback, bool), "fallback", self.fallback, "is True or False")
        check_above_zero("service_wait_s", self.service_wait_s)
        check_not_negative("service_pause_s", self.service_pause_s)
        check_at_least(1, "publish_count", self.publish_count)
        check_at_least(1, "publish_bytes", self.publish_bytes)
        check_at_least(1, "publish_attempt_count", self.publish_attempt_count)
        check_not_negative("publish_pause_s", self.publish_pause_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSettings:
    """Settings of a stream: how often it commits, and what it holds in memory."""

    flush_interval_s: float = 1.0
    """Least time between the starts of two flushes; each is a commit, with about 15 requests to an object store. A row
    waits half of it for its flush on average where rows keep coming, and not at all for the first one after a pause."""
    flush_bytes: int = 32 * 1024 * 1024
    """Arrow bytes that wait at which a flush starts before its time: they make a file of some megabytes, and a larger
    flush would only take longer."""
    max_bytes: int = 128 * 1024 * 1024
    """Maximum Arrow bytes that wait or are in a flush. Beyond it ``append`` waits until some are committed. Twice
    what two flushes of ``flush_bytes`` hold, so that the next one gathers while they are stored."""
    worker_count: int = 3
    """Maximum flushes that are started or finished at once: one that ends, one that stores its file, and one that
    gathers. Their commits follow each other in order."""
    target_file_bytes: int = 120 * 1024 * 1024
    """Size to which the files of flushes are merged, behind the flushes; that of ``SizingSettings.max_file_bytes``. 0
    merges none."""
    quiet_s: float = 3600.0
    """Time without new rows after which the rest of a partition is merged, though it is smaller. Each byte is merged
    twice at most: after a shorter time more late rows would find a rest that is not merged again."""
    final_merge_s: float = 60.0
    """Time limit for the merges that are still to be done when the stream ends. What they do not reach remains in
    smaller files. 0 merges nothing then."""

    def __post_init__(self) -> None:
        check_not_negative("flush_interval_s", self.flush_interval_s)
        check_at_least(1, "flush_bytes", self.flush_bytes)
        check_at_least(1, "max_bytes", self.max_bytes)
        check_at_least(1, "worker_count", self.worker_count)
        check_at_least(0, "target_file_bytes", self.target_file_bytes)
        check_above_zero("quiet_s", self.quiet_s)
        check_not_negative("final_merge_s", self.final_merge_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingSettings:
    """Settings of file sizes and of the cost to reach them. The corresponding Hudi keys are in brackets."""

    max_file_bytes: int = 120 * 1024 * 1024
    """Size at which a file is finished. A planned file may grow an eighth beyond it, where rows take more bytes than
    estimated, or where a new file would get less than a sixteenth of it. No file exceeds 1.25 times this value.
    [hoodie.parquet.max.file.size, same default]"""
    small_file_bytes: int = 100 * 1024 * 1024
    """Size below which a file is small: an append may fill it. 0: no file is filled and no sizes are planned.
    [hoodie.parquet.small.file.limit, same default, also strictly below]"""
    insert_split_rows: int | Literal["auto"] = "auto"
    """Incoming rows per new file; ``auto`` goes by bytes. [hoodie.copyonwrite.insert.split.size and .auto.split]"""
    rewrite_budget: float = 8.0
    """Maximum bytes rewritten per byte inserted, over the life of a file, within a twentieth; 0 fills no file. Equal
    appends end in files of 2 x budget + 1 appends each. With 8, 200 appends make 12 files. Each further byte
    rewritten per byte inserted then saves little more than one file of the 200, and twice the budget saves six."""
    policy: Literal["balanced", "hudi"] = "balanced"
    """``balanced`` plans in bytes, within the budget. ``hudi`` is the partitioner of Apache Hudi, which does not
    have a budget."""

    @property
    def is_on(self) -> bool:
        return self.small_file_bytes > 0

    def __post_init__(self) -> None:
        check_at_least(1, "max_file_bytes", self.max_file_bytes)
        check_at_least(0, "small_file_bytes", self.small_file_bytes)
        check(
            self.small_file_bytes <= self.max_file_bytes,
            "small_file_bytes",
            self.small_file_bytes,
            f"is at most max_file_bytes ({self.max_file_bytes}); who gives one gives both",
        )
        check(
            self.insert_split_rows == "auto" or is_count(self.insert_split_rows, least=1),
            "insert_split_rows",
            self.insert_split_rows,
            "is 'auto' or a whole number, 1 or more",
        )
        check_not_negative("rewrite_budget", self.rewrite_budget)
        check(self.policy in ("balanced", "hudi"), "policy", self.policy, "is 'balanced' or 'hudi'")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """Settings of the marker server in the driver."""

    host: str = "127.0.0.1"
    """Address to listen on. Not all interfaces by default: the peers of a job are known."""
    advertised_host: str | None = None
    """Address that tasks connect to where it is not ``host``: behind NAT or a Kubernetes service."""
    port: int = 0
    """Port to listen on; 0 takes any free port."""
    connection_count: int = 4096
    """Maximum connections; one executor process needs one. At most half of the descriptors that the process may open
    (``ulimit -n``) are used: the job needs the others for files and for its store."""
    frame_bytes: int = 1 << 20
    """Largest frame: 1 MiB carries about 8,000 names."""
    handshake_bytes: int = 1024
    """Largest frame from a peer that is not authenticated yet."""
    handshake_timeout_s: float = 5.0
    """Time limit for a peer to authenticate."""
    handshake_count: int = 256
    """Maximum peers that are not authenticated. One more disconnects the earliest of them, first those that have not
    named a job, so that programs without a key do not keep tasks out. A handshake takes some milliseconds. At most an
    eighth of this number is accepted at once."""
    inflight_count: int = 64
    """Maximum requests in flight per connection; at this limit the service stops reading from it."""
    send_timeout_s: float = 30.0
    """Time limit for a peer to receive a response. After it the peer is treated as dead or not reading, and is
    disconnected."""

    def __post_init__(self) -> None:
        check(is_count(self.port, least=0) and self.port <= 65535, "port", self.port, "is between 0 and 65535")
        check(isinstance(self.host, str) and bool(self.host), "host", self.host, "is an address to listen on")
        check_at_least(1, "connection_count", self.connection_count)
        check_at_least(1024, "frame_bytes", self.frame_bytes)
        check_at_least(256, "handshake_bytes", self.handshake_bytes)
        check_above_zero("handshake_timeout_s", self.handshake_timeout_s)
        check_at_least(1, "handshake_count", self.handshake_count)
        check_at_least(1, "inflight_count", self.inflight_count)
        check_above_zero("send_timeout_s", self.send_timeout_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedServiceSettings:
    """The service that ``tallymark serve`` runs outside of drivers, for jobs whose tasks cannot reach theirs."""

    url: str
    """Where it listens for jobs, such as ``https://serve.example:26755``, or ``http://127.0.0.1:26755`` here.
    Tasks have to reach the machine that it names."""
    token: str | None = field(default=None, repr=False)
    """A token of the service, with the role ``write`` for the table. Tasks never get it."""
    ca_file: str | None = None
    """File of the driver with the certificates to trust, in PEM; None: those of the system. Tasks get its content."""
    wait_s: float = 10.0
    """Time limit for its answer at the start of a job, all attempts together: a restart takes less. Afterwards the
    limits of ``TaskSettings`` and ``ViewSettings`` count, as for the driver's own service."""
    commits: bool = True
    """Whether it decides the job's commit, together with those of other processes that wait at that moment."""
    commit_wait_s: float = 5.0
    """Time limit for its answer to a commit. Without one the driver reads the log, and commits by itself: it may be
    less than ``CommitSettings.decision_timeout_s``."""

    def __post_init__(self) -> None:
        match = re.fullmatch(r"(https?)://(?:\[([^\]]+)\]|([^/?#\s@:]+)):(\d{1,5})/?", str(self.url))
        check(match is not None, "url", self.url, "is https://HOST:PORT, or http://HOST:PORT on this machine")
        assert match is not None
        check(0 < int(match[4]) <= 65535, "url", self.url, "has a port between 1 and 65535")
        if self.token is not None and not re.fullmatch(r"[!-~]+", self.token):  # its value is not shown
            raise InvalidRequest("setting token: it has spaces, line ends or other characters that no token has")
        check(
            match[1] == "https" or is_loopback(match[2] or match[3]),
            "url",
            self.url,
            "begins with https:// unless it is one of this machine",
        )
        check_above_zero("wait_s", self.wait_s)
        check_above_zero("commit_wait_s", self.commit_wait_s)

    @classmethod
    def of_environment(cls, environment: Mapping[str, str]) -> "SharedServiceSettings | None":
        """Return the service that ``TALLYMARK_SERVICE`` names, with ``TALLYMARK_SERVICE_TOKEN`` and
        ``TALLYMARK_SERVICE_CA``; None where the first is not set.
        """
        url = environment.get("TALLYMARK_SERVICE")
        if not url:
            return None
        return cls(
            url=url,
            token=environment.get("TALLYMARK_SERVICE_TOKEN") or None,
            ca_file=environment.get("TALLYMARK_SERVICE_CA") or None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewSettings:
    """Settings of a job's file-system view and its service. The corresponding Hudi keys are in brackets."""

    store: Literal["memory", "spillable", "key-value"] = "memory"
    """``memory``: about 115 bytes per file. ``spillable``: up to ``memory_bytes`` of that, the rest in SQLite.
    ``key-value``: RocksDB, updated per change. [hoodie.filesystem.view.type: MEMORY, SPILLABLE_DISK,
    EMBEDDED_KV_STORE]"""
    memory_bytes: int = 100 * 1024 * 1024
    """Memory limit of a store that has a disk: 800,000 files. [hoodie.filesystem.view.spillable.mem]"""
    folder: str | None = None
    """Folder for the files of such a store; None: the system's folder for temporary files. The files are never
    trusted after a restart. [hoodie.filesystem.view.spillable.dir, .rocksdb.base.path]"""
    serve: bool = True
    """Whether the job's service serves lookups. With False each task that needs the view reads the log itself.
    [hoodie.embed.timeline.server]"""
    incremental: bool = True
    """Whether a view follows the log entry by entry. With False every new position is built from the start, which
    costs as much as a restart. [hoodie.filesystem.view.incr.timeline.sync.enable, off by default there]"""
    preload: bool = False
    """Whether all partitions are read when a job starts, instead of each on its first lookup."""
    keep_positions: int = 256
    """Number of past positions a view can serve, where the table does not keep replaced files itself. Tasks request
    the position at which their job started; some hundred commits by other writers during a job are many."""
    checkpoint_entries: int = 64
    """Log entries after which a job writes a checkpoint; the first checkpoint follows after 8 entries at the latest.
    A reader of the log then reads fewer entries one by one, at about 30 ms per 32 entries."""
    checkpoint_timeout_s: float = 60.0
    """Time limit for the checkpoint at the end of a job; a later job writes what is missing. The first checkpoint of
    a million files takes some seconds; later ones take time in proportion to the changes."""
    wait_s: float = 5.0
    """Time a task waits for the job's service to answer a lookup before it reads the log itself. The service is
    retried every ``TaskSettings.service_pause_s``. [hoodie.filesystem.remote.timeout.secs, 300 there]"""
    cache_bytes: int = 32 * 1024 * 1024
    """Size of a process's cache of partition blocks for its tasks: 280,000 files. The content of a block at one
    position does not change."""
    log_wait_s: float = 60.0
    """Time limit for a lookup in a task that reads the log itself: six times the time for 10,000 entries at 30 ms
    per request."""
    log_readings: int = 10
    """Maximum log reads that a process may start per minute, for all its jobs; the next read waits. One read per job
    is enough unless storage fails."""
    log_jitter_s: float = 1.0
    """Maximum random delay before such a read: a thousand processes that lose the service at once spread their
    thousand first requests to storage over a second, instead of one millisecond."""

    def __post_init__(self) -> None:
        stores = ("memory", "spillable", "key-value")
        check(self.store in stores, "store", self.store, "is 'memory', 'spillable' or 'key-value'")
        check_at_least(1, "memory_bytes", self.memory_bytes)
        for name, value in (("serve", self.serve), ("incremental", self.incremental), ("preload", self.preload)):
            check(isinstance(value, bool), name, value, "is True or False")
        check_at_least(0, "keep_positions", self.keep_positions)
        check_at_least(1, "checkpoint_entries", self.checkpoint_entries)
        check_above_zero("checkpoint_timeout_s", self.checkpoint_timeout_s)
        check_above_zero("wait_s", self.wait_s)
        check_at_least(0, "cache_bytes", self.cache_bytes)
        check_above_zero("log_wait_s", self.log_wait_s)
        check_at_least(1, "log_readings", self.log_readings)
        check_not_negative("log_jitter_s", self.log_jitter_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitSettings:
    """Settings of commit, rollback and clean."""

    decision_timeout_s: float = 120.0
    """Time limit for deciding a log entry while storage does not respond, before CommitUnknown: several times the
    store's own retries (``RetrySettings.timeout_s``, 20 s)."""
    retry_pause_s: float = 0.5
    """Pause before an unanswered request is retried."""
    end_timeout_s: float = 600.0
    """Time limit at the end of a job for deleting replaced files or rolling back. The next write does the rest."""
    concurrency: int = 32
    """Maximum bookkeeping requests in flight during commit, rollback and clean."""
    clean_overdue_ratio: float = 1 / 24
    """With ``readers="table"``: a write cleans at its end once the oldest replaced file is overdue by this share of
    the table's ``retain_hours``, and then expires all due files. Where every write replaces files, a day's retention
    gives one log entry for a clean per hour instead of one per write, and files remain at most an hour longer. 0: as
    soon as any file is due. ``Table.clean`` does not wait."""
    log_entry_count: int = 128
    """Least number of newest log entries that are kept; older ones are archived with every 64th or so
    (``ViewSettings.checkpoint_entries``), once nothing needs them. ``Table.timeline``, ``as_of`` and the result of a
    ``txn`` that is run again reach back this far. 128 entries are at most 256 objects. Writers of one table should
    agree on it."""
    timeline_commit_count: int = 32
    """Least number of newest commits that are kept in the Hudi timeline, three objects each, for time travel and
    incremental queries by readers of that format. [hoodie.keep.min.commits, 20 there]"""
    zombie_after_s: float = 24 * 3600.0
    """On object stores, time for which a fence occupies the name of a lost task attempt before it is swept. An older
    put is treated as dead: stores close connections after minutes."""

    def __post_init__(self) -> None:
        check_above_zero("decision_timeout_s", self.decision_timeout_s)
        check_above_zero("end_timeout_s", self.end_timeout_s)
        check_not_negative("retry_pause_s", self.retry_pause_s)
        check_at_least(1, "concurrency", self.concurrency)
        check_not_negative("clean_overdue_ratio", self.clean_overdue_ratio)
        check_at_least(1, "log_entry_count", self.log_entry_count)
        check_at_least(1, "timeline_commit_count", self.timeline_commit_count)
        check_not_negative("zombie_after_s", self.zombie_after_s)


NO_SIZING = SizingSettings(small_file_bytes=0)
"""The meaning of ``sizing=None``: files are finished at the default size, and no sizes are planned."""
