"""Storage options beside the URL. Values only, and never a secret, so that they may travel to tasks.

Keys come from the environment, a profile, a role of the machine, or a provider that is named here and runs wherever
storage is opened.
"""

import re
from dataclasses import dataclass

from tallymark.backends.errors import InvalidPath

_PROVIDER = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_SECRET = re.compile(r"(?i)secret|password|passwd|token|access[._-]?key|credential(?!s?[._-]provider)")

_ABOVE_ZERO = (
    "connect_timeout_s",
    "request_timeout_s",
    "answer_timeout_s",
    "data_bytes_per_s_min",
    "request_count_max",
    "retry_attempt_count",
)
_NOT_NEGATIVE = (
    "spool_memory_bytes",
    "retry_pause_s",
    "retry_throttled_pause_s",
    "retry_pause_max_s",
    "retry_budget_count",
    "retry_budget_ratio",
    "retry_budget_per_s",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageOptions:
    """What ``open_backend`` takes beside the URL. Each store uses what concerns it; None is the store's own default."""

    endpoint: str | None = None
    """S3, GCS: the server's URL where it is not the vendor's own, such as ``https://minio.example:9000``."""
    region: str | None = None
    """S3: the bucket's region."""
    path_style: bool | None = None
    """S3: whether the bucket is in the path instead of the host name. True where an endpoint is given."""
    profile: str | None = None
    """S3: a profile of ``~/.aws``; needs the extra ``[aws]``."""
    credentials: str | None = None
    """A provider of credentials, as ``package.module:function``; called in each process when the first request is sent,
    and again when what it gave expires. It gives a mapping; S3: ``access_key_id``, ``secret_access_key``, ``token``,
    ``expires_at``; GCS: ``token``, ``expires_at``."""
    ca_file: str | None = None
    """S3, GCS: a PEM file with certificates to trust beside the system's."""
    hadoop: tuple[tuple[str, str], ...] = ()
    """HDFS: settings such as ``dfs.nameservices``, over those of ``HADOOP_CONF_DIR``."""
    connect_timeout_s: float = 5.0
    """How long a connection may take to be made: three lost packets on a long way."""
    request_timeout_s: float = 10.0
    """How long one request without a data file may take before its outcome counts as unknown: thrice the 99.9th
    percentile of a slow store, and short enough for a second request within half a minute."""
    answer_timeout_s: float = 20.0
    """How long one call may take with all its repeats: a store that is down is a clear error within half a minute.
    At least ``request_timeout_s``."""
    data_bytes_per_s_min: float = 512 * 1024.0
    """The slowest upload of a data file that is waited for; its time is ``request_timeout_s`` more."""
    spool_memory_bytes: int = 8 * 1024 * 1024
    """S3, GCS: bytes of one data file kept in memory; beyond, it grows in a file of the temporary directory."""
    request_count_max: int = 64
    """Requests in flight at most, for one process: more share the same bandwidth and wait longer."""
    retry_attempt_count: int = 10
    """S3, GCS, HDFS: times that one call is made at most. ``backends/retry.py`` has the reasons of all ``retry_``."""
    retry_pause_s: float = 0.1
    """The longest pause before the first repeat; it doubles with each."""
    retry_throttled_pause_s: float = 1.0
    """The same where the store throttled."""
    retry_pause_max_s: float = 5.0
    """No pause is longer."""
    retry_budget_count: int = 100
    """Repeats that may be made at once, by all calls on one opened store."""
    retry_budget_ratio: float = 0.5
    """What each call adds to that budget."""
    retry_budget_per_s: float = 5.0
    """What each second adds to it."""

    def __post_init__(self) -> None:
        if self.credentials is not None and not _PROVIDER.fullmatch(self.credentials):
            raise InvalidPath("option credentials names a provider, as 'package.module:function'; keys are not taken")
        for key, value in self.hadoop:
            if _SECRET.search(key) and not key.endswith((".provider", ".path", ".provider.path")):
                raise InvalidPath(f"option hadoop: {key} looks like a secret; name a file or a provider instead")
            if not isinstance(value, str):
                raise InvalidPath(f"option hadoop: {key} is {value!r}; give a text, as in Hadoop's XML files")
        for name in _ABOVE_ZERO:
            if not getattr(self, name) > 0:
                raise InvalidPath(f"option {name}={getattr(self, name)!r}: {name} is a number above zero")
        for name in _NOT_NEGATIVE:
            if not getattr(self, name) >= 0:
                raise InvalidPath(f"option {name}={getattr(self, name)!r}: {name} is a number, 0 or more")
        if self.answer_timeout_s < self.request_timeout_s:
            raise InvalidPath(
                f"option answer_timeout_s={self.answer_timeout_s!r}: it is at least request_timeout_s, "
                f"{self.request_timeout_s!r}; give both"
            )
