"""Every limit, timeout and default in one place, each with its reason. Values only: frozen, checked when made."""

from dataclasses import dataclass
from typing import Literal

from tallymark.engine.errors import InvalidRequest

MarkerKind = Literal["batched", "direct"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerSettings:
    """How markers reach storage. Hudi's keys for the same things stand in brackets."""

    kind: MarkerKind = "batched"
    """``batched``: many markers in one segment. ``direct``: one object a marker, without a service.
    [hoodie.write.markers.type]"""
    interval_s: float | Literal["auto"] = "auto"
    """The least time between the starts of two flushes of one marker directory, on average: a start counts from when it
    was due, up to 2 ms later or earlier for the sake of timers. ``auto`` is a quarter of the measured put time: a mean
    ack of at most 1.125 puts for at most 4 flushes begun in one put's time. Now and then more is tried, and kept while
    acks are sooner for it, as on a local disk whose flushes hold each other up.
    [hoodie.markers.timeline_server_based.batch.interval_ms]"""
    throttled_interval_s_max: float = 5.0
    """Where the store asks for fewer requests the interval is lengthened by half, up to this, and batches grow: a
    twelfth of the time that a task waits for its ack (``TaskSettings.marker_wait_s``)."""
    worker_count: int = 20
    """Flushes in flight at most: enough for ``auto`` when a put takes five times its mean.
    [hoodie.markers.timeline_server_based.batch.num_threads]"""
    queue_limit: int = 100_000
    """Markers waiting or in flight at most, a directory: some 75 MB if they came over the wire. Further requests are
    refused as Overloaded, with the time to come back after."""
    flush_timeout_s: float = 30.0
    """How long one put of a segment may take before it is repeated: ten times a slow store's 99.9th percentile, and
    longer than a store repeats it by itself (``RetrySettings.timeout_s``, 20 s), so that its own error is heard."""
    flush_attempt_count: int = 4
    """Puts of one segment before its requests fail. A repeat has the same name and bytes, so it cannot do harm."""
    flush_retry_pause_s: float = 0.1
    """Pause before the first repeat; before the n-th it is n times as long. Room for a store that throttles."""
    load_concurrency: int = 32
    """Segments read at once when a directory is loaded: keeps a round trip of 100 ms from adding up."""
    hedge_quantile: float | None = 0.95
    """A put that takes longer than this share of the recent ones, than two medians of them and than 50 ms is sent once
    more, and the first answer counts. None: never, nor is it where half of them take less than 5 ms."""
    hedge_ratio_max: float = 0.1
    """Second copies at most, as a share of all puts; 2 at most can be saved up: when the whole store is slow they would
    make it slower."""
    segment_count_max: int = 20
    """Segments that may lie in a directory before any are merged: as many objects as Hudi's server writes to."""
    merge_freed_min: int = 8
    """Objects that a merge frees at least, so that merges add at most one put to so many flushes. With 8 no more than
    20 objects lie there up to 4,000 flushes; 16 saves a third of the merges, and up to 36 lie there."""
    merge_bytes_ratio_max: float = 4.0
    """Bytes written at most for each byte of markers, merges included; 1 turns merges off. With 4 some 50 objects hold
    46,000 flushes: each further 1 is another rewriting of each marker, and fewer objects in a long job."""
    merge_memory_bytes: int = 4 * 1024 * 1024
    """Bytes of young segments that a directory keeps until they are merged; the others are read back. Some 50,000
    markers, a fraction of what their names take."""

    def __post_init__(self) -> None:
        _check(self.kind in ("batched", "direct"), "kind", self.kind, "is 'batched' or 'direct'")
        _check(
            self.interval_s == "auto" or _is_number(self.interval_s, least=0),
            "interval_s",
            self.interval_s,
            "is 'auto' or a number of seconds, 0 or more",
        )
        _check_above_zero("throttled_interval_s_max", self.throttled_interval_s_max)
        _check_at_least(1, "worker_count", self.worker_count)
        _check_at_least(1, "queue_limit", self.queue_limit)
        _check_above_zero("flush_timeout_s", self.flush_timeout_s)
        _check_at_least(1, "flush_attempt_count", self.flush_attempt_count)
        _check_not_negative("flush_retry_pause_s", self.flush_retry_pause_s)
        _check_at_least(1, "load_concurrency", self.load_concurrency)
        _check(
            self.hedge_quantile is None or (_is_number(self.hedge_quantile, least=0.5) and self.hedge_quantile < 1),
            "hedge_quantile",
            self.hedge_quantile,
            "is None or a number from 0.5 to below 1",
        )
        _check_not_negative("hedge_ratio_max", self.hedge_ratio_max)
        _check_at_least(1, "segment_count_max", self.segment_count_max)
        _check_at_least(1, "merge_freed_min", self.merge_freed_min)
        _check(
            _is_number(self.merge_bytes_ratio_max, least=1) and self.merge_bytes_ratio_max <= 100,
            "merge_bytes_ratio_max",
            self.merge_bytes_ratio_max,
            "is a number between 1 and 100",
        )
        _check_at_least(0, "merge_memory_bytes", self.merge_memory_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSettings:
    """How a writer, or a reader that holds files back from cleans, shows that it lives, and when it is taken for dead.

    Hudi: hoodie.client.heartbeat.interval_in_ms (60 s) and .tolerable.misses (10).
    """

    beat_interval_s: float = 10.0
    """Time between two beats: one small put each, and one read of the commit log's tail."""
    expiry_s: float = 120.0
    """A beat this much older than a fresh one means a dead writer. Twelve missed beats outlast a store's bad minute and
    a long pause of the process; until then a crashed writer on another host delays nobody, its files merely wait."""

    def __post_init__(self) -> None:
        _check_above_zero("beat_interval_s", self.beat_interval_s)
        _check(
            _is_number(self.expiry_s, least=4 * self.beat_interval_s),
            "expiry_s",
            self.expiry_s,
            "is at least four beat intervals",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSettings:
    """How a task writes its files. Travels to tasks in the ticket."""

    row_group_bytes: int = 64 * 1024 * 1024
    """Arrow bytes of one partition that are gathered before they are encoded: large enough for good encodings."""
    buffer_bytes: int = 256 * 1024 * 1024
    """Arrow bytes that a task gathers for all its partitions; beyond, the fullest partition is encoded early."""
    open_file_count: int = 500
    """Files that a task keeps open; beyond, the one that waited longest is finished. Half of the usual 1,024."""
    compression: Literal["zstd", "snappy", "lz4", "gzip", "none"] = "zstd"
    """Parquet codec: zstd files are a third smaller than snappy's for a few percent of CPU."""
    marker_wait_s: float = 60.0
    """How long a task waits for a marker's ack, reconnecting as needed, before it fails."""
    fallback: bool = True
    """Whether a task that cannot reach the service puts its markers itself, one object each. They obey the same rules
    and cost a put each. Without it such a task fails after ``marker_wait_s``."""
    service_wait_s: float = 20.0
    """How long a task waits for the service before it falls back; half of ``marker_wait_s`` if that is less, so that
    there is time left for its own put. Three attempts to connect of five seconds each, and a slow store's put."""
    service_pause_s: float = 30.0
    """While the service is out of reach, how often a process tries it again. No task waits for that."""
    publish_attempt_count: int = 4
    """Names under which an object store is offered one file, when it does not tell what became of the last. Of puts
    that fail in 5 of 100 cases, 6 files in a million use them up. Each name is one marker more, and perhaps a fence."""
    publish_pause_s: float = 1.0
    """Pause before the second of these names; before the n-th it is n - 1 times as long. What a load balancer resets
    goes through at once; a store that throttles has some seconds."""

    @property
    def service_patience_s(self) -> float:
        """What ``service_wait_s`` comes to."""
        return min(self.service_wait_s, self.marker_wait_s / 2)

    def __post_init__(self) -> None:
        _check_at_least(1, "row_group_bytes", self.row_group_bytes)
        _check_at_least(1, "buffer_bytes", self.buffer_bytes)
        _check_at_least(1, "open_file_count", self.open_file_count)
        _check(
            self.compression in ("zstd", "snappy", "lz4", "gzip", "none"),
            "compression",
            self.compression,
            "is one of zstd, snappy, lz4, gzip, none",
        )
        _check_above_zero("marker_wait_s", self.marker_wait_s)
        _check(isinstance(self.fallback, bool), "fallback", self.fallback, "is True or False")
        _check_above_zero("service_wait_s", self.service_wait_s)
        _check_not_negative("service_pause_s", self.service_pause_s)
        _check_at_least(1, "publish_attempt_count", self.publish_attempt_count)
        _check_not_negative("publish_pause_s", self.publish_pause_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizingSettings:
    """How large files are to be, and what it may cost to make them so. Hudi's keys for the same stand in brackets."""

    max_file_bytes: int = 120 * 1024 * 1024
    """A file is finished when it has grown to this; one that was planned, an eighth beyond, where rows take more than
    was expected. None is larger than 1.25 times this. [hoodie.parquet.max.file.size, same default]"""
    small_file_bytes: int = 100 * 1024 * 1024
    """A file below this is small: an append may fill it. 0: none is ever filled, and nothing is planned.
    [hoodie.parquet.small.file.limit, same default and as strictly below]"""
    insert_split_rows: int | Literal["auto"] = "auto"
    """Incoming rows of one new file; ``auto`` goes by bytes. [hoodie.copyonwrite.insert.split.size and .auto.split]"""
    rewrite_budget: float = 8.0
    """Bytes rewritten at most for each byte inserted, over the life of a file, give or take a twentieth; 0 fills none.
    Equal appends come to files of 2 x budget + 1 of them. 200 appends to 12 files at 8: from there on a further byte
    rewritten for each one inserted saves little more than a file of the 200, and twice the budget six."""
    policy: Literal["balanced", "hudi"] = "balanced"
    """``balanced`` plans in bytes, within the budget; ``hudi`` is the partitioner of Apache Hudi, which has none."""

    @property
    def is_on(self) -> bool:
        return self.small_file_bytes > 0

    def __post_init__(self) -> None:
        _check_at_least(1, "max_file_bytes", self.max_file_bytes)
        _check_at_least(0, "small_file_bytes", self.small_file_bytes)
        _check(
            self.small_file_bytes <= self.max_file_bytes,
            "small_file_bytes",
            self.small_file_bytes,
            f"is at most max_file_bytes ({self.max_file_bytes}); who gives one gives both",
        )
        _check(
            self.insert_split_rows == "auto" or _is_count(self.insert_split_rows, least=1),
            "insert_split_rows",
            self.insert_split_rows,
            "is 'auto' or a whole number, 1 or more",
        )
        _check_not_negative("rewrite_budget", self.rewrite_budget)
        _check(self.policy in ("balanced", "hudi"), "policy", self.policy, "is 'balanced' or 'hudi'")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """The server in the driver that tasks ask for markers."""

    host: str = "127.0.0.1"
    """The address to listen on. Never all interfaces by default: the peers of a job are known."""
    advertised_host: str | None = None
    """What tasks connect to where it is not ``host``: behind NAT or a Kubernetes service."""
    port: int = 0
    """0 takes any free port."""
    connection_count: int = 4096
    """Connections at most; one executor process needs one."""
    frame_bytes: int = 1 << 20
    """The largest frame: 1 MiB holds about 8,000 names."""
    handshake_bytes: int = 1024
    """The largest frame from a peer that has not authenticated itself."""
    handshake_timeout_s: float = 5.0
    """How long a peer may take to authenticate itself."""
    inflight_count: int = 64
    """Requests of one connection in flight at most; beyond, the service stops reading from it."""
    send_timeout_s: float = 30.0
    """How long a peer may take to receive an answer before it is given up: it does not read, or is gone."""

    def __post_init__(self) -> None:
        _check(_is_count(self.port, least=0) and self.port <= 65535, "port", self.port, "is between 0 and 65535")
        _check(isinstance(self.host, str) and bool(self.host), "host", self.host, "is an address to listen on")
        _check_at_least(1, "connection_count", self.connection_count)
        _check_at_least(1024, "frame_bytes", self.frame_bytes)
        _check_at_least(256, "handshake_bytes", self.handshake_bytes)
        _check_above_zero("handshake_timeout_s", self.handshake_timeout_s)
        _check_at_least(1, "inflight_count", self.inflight_count)
        _check_above_zero("send_timeout_s", self.send_timeout_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewSettings:
    """How a job keeps what the table holds, and serves it to its tasks. Hudi's keys for the same stand in brackets."""

    store: Literal["memory", "spillable", "key-value"] = "memory"
    """``memory``: about 115 bytes a file. ``spillable``: ``memory_bytes`` of it, the rest in SQLite. ``key-value``:
    RocksDB, change by change. [hoodie.filesystem.view.type: MEMORY, SPILLABLE_DISK, EMBEDDED_KV_STORE]"""
    memory_bytes: int = 100 * 1024 * 1024
    """What a store that has a disk may keep in memory: 800,000 files. [hoodie.filesystem.view.spillable.mem]"""
    folder: str | None = None
    """Where such a store has its files; None: the system's folder for temporary files. They are never trusted after a
    restart. [hoodie.filesystem.view.spillable.dir, .rocksdb.base.path]"""
    serve: bool = True
    """Whether the job's service answers look-ups; without it each task that asks reads the log by itself.
    [hoodie.embed.timeline.server]"""
    incremental: bool = True
    """Whether a view follows the log entry by entry; without it every new position is built from the start, which
    costs as much as a restart. [hoodie.filesystem.view.incr.timeline.sync.enable, off by default there]"""
    preload: bool = False
    """Whether all partitions are read when a job begins, and not each when somebody asks for it."""
    keep_positions: int = 256
    """How many positions back a view answers for, where the table keeps no replaced files itself: tasks ask for the one
    at which their job began, and some hundred commits by others during a job are many."""
    checkpoint_entries: int = 64
    """Entries of the log after which a job leaves a checkpoint, the first one after 8 of them at the latest: who reads
    the log then has fewer to read one by one, at some 30 ms for 32 of them."""
    checkpoint_timeout_s: float = 60.0
    """How long the end of a job may take for that; what is not done by then, a later job does. The first one of a
    million files takes some seconds, and the next ones as much of that as has changed."""
    wait_s: float = 5.0
    """How long a task waits for the job's service to answer a look-up before it reads the log itself; the service is
    tried again every ``TaskSettings.service_pause_s``. [hoodie.filesystem.remote.timeout.secs, 300 there]"""
    cache_bytes: int = 32 * 1024 * 1024
    """Blocks of partitions that a process keeps for its tasks: what they hold at one position does not change. 280,000
    files."""
    log_wait_s: float = 60.0
    """How long a look-up may take in a task that reads the log itself: six times what 10,000 entries take at 30 ms a
    request."""
    log_readings: int = 10
    """How often in a minute a process may begin to read the log so, for all its jobs; the next one waits. Once a job is
    enough, unless storage fails."""
    log_jitter_s: float = 1.0
    """It begins at a random moment within this: a thousand processes that lose the service at once ask storage for
    their first entry a thousand times in a second, and not in the same millisecond."""

    def __post_init__(self) -> None:
        stores = ("memory", "spillable", "key-value")
        _check(self.store in stores, "store", self.store, "is 'memory', 'spillable' or 'key-value'")
        _check_at_least(1, "memory_bytes", self.memory_bytes)
        for name, value in (("serve", self.serve), ("incremental", self.incremental), ("preload", self.preload)):
            _check(isinstance(value, bool), name, value, "is True or False")
        _check_at_least(0, "keep_positions", self.keep_positions)
        _check_at_least(1, "checkpoint_entries", self.checkpoint_entries)
        _check_above_zero("checkpoint_timeout_s", self.checkpoint_timeout_s)
        _check_above_zero("wait_s", self.wait_s)
        _check_at_least(0, "cache_bytes", self.cache_bytes)
        _check_above_zero("log_wait_s", self.log_wait_s)
        _check_at_least(1, "log_readings", self.log_readings)
        _check_not_negative("log_jitter_s", self.log_jitter_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitSettings:
    """How a job is decided, and how what it leaves is cleaned."""

    decision_timeout_s: float = 120.0
    """How long an entry of the log is fought for against silent storage before CommitUnknown: several times what a
    store repeats by itself (``RetrySettings.timeout_s``, 20 s)."""
    retry_pause_s: float = 0.5
    """Pause before an unanswered request is repeated."""
    end_timeout_s: float = 600.0
    """How long the end of a job may take to delete what it replaced, or to roll back. What is left then, the next
    write does."""
    concurrency: int = 32
    """Bookkeeping requests in flight at once during commit, rollback and clean."""
    clean_overdue_ratio: float = 1 / 24
    """With ``readers="table"``: a write cleans at its end once the oldest replaced file is overdue by this share of the
    table's ``retain_hours``, and then lets go all that is due. Where every write replaces something, that is an entry
    of the log for a clean each hour of a day's retention, not one for each write; files stay an hour longer at most. 0:
    as soon as anything is due. ``Table.clean`` does not wait."""
    zombie_after_s: float = 24 * 3600.0
    """On object stores, how long a fence keeps the name of a lost task attempt before it is swept. A put that was begun
    longer ago is taken for dead: stores close connections after minutes."""

    def __post_init__(self) -> None:
        _check_above_zero("decision_timeout_s", self.decision_timeout_s)
        _check_above_zero("end_timeout_s", self.end_timeout_s)
        _check_not_negative("retry_pause_s", self.retry_pause_s)
        _check_at_least(1, "concurrency", self.concurrency)
        _check_not_negative("clean_overdue_ratio", self.clean_overdue_ratio)
        _check_not_negative("zombie_after_s", self.zombie_after_s)


def check_settings(name: str, value: object, kind: type) -> None:
    """Raises InvalidRequest where what was given by this name is of another kind."""
    if not isinstance(value, kind):
        raise InvalidRequest(
            f"{name}={value!r} is no {kind.__name__}: give {name}={kind.__name__}(), with what differs from its "
            "defaults, or leave it out"
        )


def _check(holds: bool, name: str, value: object, rule: str) -> None:
    if not holds:
        raise InvalidRequest(f"setting {name}={value!r}: {name} {rule}")


def _check_at_least(least: int, name: str, value: object) -> None:
    _check(_is_count(value, least=least), name, value, f"is a whole number, {least} or more")


def _check_not_negative(name: str, value: object) -> None:
    _check(_is_number(value, least=0), name, value, "is a number, 0 or more")


def _check_above_zero(name: str, value: object) -> None:
    _check(_is_number(value, least=0) and value != 0, name, value, "is a number above zero")


def _is_count(value: object, *, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_number(value: object, *, least: float) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= least


NO_SIZING = SizingSettings(small_file_bytes=0)
"""What ``sizing=None`` means: files of the default size are finished, and nothing is planned."""
