"""Settings of ``tallymark serve``: every limit, timeout and default, each with its reason."""

import re
from dataclasses import dataclass
from typing import Literal

from tallymark.engine.setting_checks import (
    check,
    check_above_zero,
    check_at_least,
    check_not_negative,
    is_count,
    is_loopback,
    is_network,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """Settings of the process of ``tallymark serve``."""

    memory_mb: int = 512
    """Memory, in MiB, for tables, views and markers of all listeners; beyond it those that were not used for the
    longest time are released, and read again from storage when they are requested. The process itself takes 100 MiB
    more, and each connection some kilobytes."""
    log_format: Literal["text", "json"] = "text"
    """``text``: ``event key=value``. ``json``: an object per line, with the same keys."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The least severe lines that are logged, to standard error."""
    audit_log: str | None = None
    """File that gets a line for each request of a driver, and no other lines; None: they are logged with the others. It
    is opened again when it was moved away."""

    def __post_init__(self) -> None:
        check_at_least(16, "memory_mb", self.memory_mb)
        check(self.log_format in ("text", "json"), "log_format", self.log_format, "is 'text' or 'json'")
        levels = ("debug", "info", "warning", "error")
        check(self.log_level in levels, "log_level", self.log_level, "is 'debug', 'info', 'warning' or 'error'")
        check(
            self.audit_log is None or (isinstance(self.audit_log, str) and bool(self.audit_log)),
            "audit_log",
            self.audit_log,
            "is the path of a file",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JobServiceSettings:
    """Settings of the service that ``tallymark serve`` runs for jobs."""

    host: str = "127.0.0.1"
    """Address to listen on. Another than the machine's own needs ``tls_cert``, ``tls_key`` and ``tokens``."""
    port: int = 26755
    """Port that drivers connect to, by HTTP; 0 takes any free port."""
    task_port: int = 26756
    """Port that tasks connect to; 0 takes any free port."""
    advertised_host: str | None = None
    """Address that tasks connect to, where it is not the one by which their driver has reached the service."""
    tls_cert: str | None = None
    """File with the certificate of the service and its chain, in PEM. It is read again when it has changed."""
    tls_key: str | None = None
    """File with the key of the certificate, in PEM."""
    tokens: str | None = None
    """File with the tokens of drivers (``tallymark serve token``); None: every driver of this machine is served. It is
    read again when it has changed."""
    requests_per_s: float = 10.0
    """Requests of one token, or of one address without tokens, that are answered per second in the long run; further
    ones are refused with the time after which to retry. A job sends one."""
    request_burst: int = 200
    """Requests that are answered at once before that: the jobs of a night that start together."""
    connection_count: int = 4096
    """Maximum connections of tasks; one executor process needs one per job. At most half of the descriptors that the
    process may open are used."""
    driver_count: int = 256
    """Maximum connections of drivers, each of which is closed after one answer."""
    request_timeout_s: float = 10.0
    """Time limit for a driver to send the whole of a request that it has begun."""
    request_bytes: int = 32 * 1024
    """Largest request of a driver, with its head."""
    drain_s: float = 3.0
    """Time between SIGTERM, from when on ``/readyz`` fails, and the end: in it a balancer notices that requests have to
    go elsewhere."""

    def __post_init__(self) -> None:
        check(isinstance(self.host, str) and bool(self.host), "host", self.host, "is an address to listen on")
        for name in ("advertised_host", "tls_cert", "tls_key", "tokens"):
            value = getattr(self, name)
            check(value is None or (isinstance(value, str) and bool(value)), name, value, "is a text")
        check((self.tls_cert is None) == (self.tls_key is None), "tls_key", self.tls_key, "is given where tls_cert is")
        check(
            is_loopback(self.host) or (self.tls_cert is not None and self.tokens is not None),
            "host",
            self.host,
            "is an address of this machine alone, such as 127.0.0.1, unless tls_cert, tls_key and tokens are given",
        )
        check_above_zero("requests_per_s", self.requests_per_s)
        check_at_least(1, "request_burst", self.request_burst)
        for name, port in (("port", self.port), ("task_port", self.task_port)):
            check(is_count(port, least=0) and port <= 65535, name, port, "is between 0 and 65535")
        check_at_least(1, "connection_count", self.connection_count)
        check_at_least(1, "driver_count", self.driver_count)
        check_above_zero("request_timeout_s", self.request_timeout_s)
        check_at_least(1024, "request_bytes", self.request_bytes)
        check_not_negative("drain_s", self.drain_s)

    def url(self, host: str, port: int) -> str:
        """Return the URL of a listener with this certificate."""
        scheme = "http" if self.tls_cert is None else "https"
        return f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HudiServiceSettings:
    """Settings of the service that takes markers of Hudi's own writers."""

    host: str = "127.0.0.1"
    """Address to listen on. Hudi's client sends no credentials: another than the machine's own needs ``networks``."""
    port: int = 26754
    """Port to listen on, by default Hudi's own; 0 takes any free port. [hoodie.filesystem.view.remote.port]"""
    networks: tuple[str, ...] = ()
    """Networks whose clients are served, such as ``10.1.0.0/16``; empty for those of this machine."""
    views: str | None = None
    """``host:port`` of a timeline server of Hudi that answers everything but markers. Without one Hudi's writers get
    an error at once, and look themselves (``hoodie.filesystem.view.type=REMOTE_FIRST``)."""
    connection_count: int = 4096
    """Maximum connections; an executor of Spark has one for each of its cores. At most half of the descriptors that the
    process may open are used."""
    handshake_count: int = 256
    """Maximum clients that have not sent a whole request yet. One more disconnects the earliest of them."""
    handshake_timeout_s: float = 10.0
    """Time limit for a client to send the whole of a request that it has begun."""
    send_timeout_s: float = 30.0
    """Time limit for a client to receive a response, after which it is disconnected."""
    request_bytes: int = 32 * 1024
    """Largest request, with its head: Hudi sends a path of the marker directory and one of the marker."""
    views_timeout_s: float = 300.0
    """Time limit for an answer of ``views``, as Hudi's clients have it."""

    def __post_init__(self) -> None:
        check(is_count(self.port, least=0) and self.port <= 65535, "port", self.port, "is between 0 and 65535")
        check(isinstance(self.host, str) and bool(self.host), "host", self.host, "is an address to listen on")
        for network in self.networks:
            check(is_network(network), "networks", network, "holds networks, such as '10.1.0.0/16'")
        check(
            bool(self.networks) or is_loopback(self.host),
            "host",
            self.host,
            "is an address of this machine alone, such as 127.0.0.1, unless networks says who is served: Hudi's client "
            "sends no credentials",
        )
        check(
            self.views is None or re.fullmatch(r"[^:/\s]+:\d{1,5}", self.views) is not None,
            "views",
            self.views,
            "is host:port",
        )
        check_at_least(1, "connection_count", self.connection_count)
        check_at_least(1, "handshake_count", self.handshake_count)
        check_above_zero("handshake_timeout_s", self.handshake_timeout_s)
        check_above_zero("send_timeout_s", self.send_timeout_s)
        check_at_least(1024, "request_bytes", self.request_bytes)
        check_above_zero("views_timeout_s", self.views_timeout_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSettings:
    """Settings of the service that shows the tables below the roots."""

    enabled: bool = True
    """Whether there is one."""
    host: str = "127.0.0.1"
    """Address to listen on. Another than the machine's own needs the certificate and the tokens of
    ``JobServiceSettings``, which this service uses, too."""
    memory_mb: int = 512
    """Memory, in MiB, for tables and their views, as ``ServeSettings.memory_mb``: the service is a process of its own,
    so that no one who looks delays an ack. A table of a million files takes 125 MB, and one may stay in memory in full
    where that is a quarter."""
    port: int = 26757
    """Port to listen on, by HTTP; 0 takes any free port."""
    hosts: tuple[str, ...] = ()
    """Names by which browsers and programs reach the service, without port, such as ``lake.example``, beside ``host``
    and this machine's own. A request with another is refused: a page of a stranger must not read the answers."""
    base_path: str = ""
    """Path that all others start with, such as ``/lake`` behind an Ingress that passes it on unchanged."""
    poll_s: float = 30.0
    """Time for which a summary of a table is used again, and between two reads of the log of a table for which a client
    waits for events. The former costs three gets and a LIST, the latter the gets. Without a client nothing is read."""
    written_poll_s: float = 0.4
    """The latter while a job that uses this service is writing the table."""
    wait_s: float = 1.5
    """Time for which a page of all tables waits for those that are being read, the search for them included; the others
    are shown as not read yet."""
    stream_count: int = 256
    """Maximum clients that wait for events at a time."""
    requests_per_s: float = 50.0
    """Requests of one token, or of one address without tokens, that are answered per second in the long run; a page
    that is open sends one every few seconds."""
    request_burst: int = 500
    """Requests that are answered at once before that."""
    request_bytes: int = 64 * 1024
    """Largest body of a request."""
    session_hours: float = 12.0
    """Time after which a browser has to present its token again."""
    depth: int = 3
    """Levels of folders below a root in which tables are looked for, such as ``<team>/<database>/<table>``; 0 for roots
    that are tables. A level more costs a listing of each of its folders."""
    discover_s: float = 300.0
    """Time for which the tables that were found are kept; a new table is shown after that. A search costs one LIST per
    folder: by default 12 an hour of each."""
    discover_folder_count: int = 10_000
    """Maximum listings of a search below one root; beyond it none of its tables are shown, and the reason is. It bounds
    what a root costs that contains far more than tables."""
    discover_timeout_s: float = 30.0
    """Time limit for the search below one root: that long a root without an answer delays the tables of the others. 16
    folders are listed at once: 10,000 take that long where one takes 50 ms."""

    def __post_init__(self) -> None:
        check(isinstance(self.host, str) and bool(self.host), "host", self.host, "is an address to listen on")
        check(is_count(self.port, least=0) and self.port <= 65535, "port", self.port, "is between 0 and 65535")
        is_path = re.fullmatch(r"(/[\w.~-]+)*", self.base_path) is not None
        check(is_path, "base_path", self.base_path, "is empty or a path such as '/lake', without a slash at its end")
        for host in self.hosts:
            is_name = isinstance(host, str) and re.fullmatch(r"[\w.-]+|[0-9a-f:.]+", host, re.IGNORECASE) is not None
            check(is_name, "hosts", host, "contains names of hosts, such as 'lake.example', without scheme and port")
        for name in ("poll_s", "written_poll_s", "wait_s", "requests_per_s", "session_hours"):
            check_above_zero(name, getattr(self, name))
        for name in ("stream_count", "request_burst"):
            check_at_least(1, name, getattr(self, name))
        check_at_least(16, "memory_mb", self.memory_mb)
        check_at_least(1024, "request_bytes", self.request_bytes)
        check_at_least(0, "depth", self.depth)
        check_above_zero("discover_s", self.discover_s)
        check_at_least(1, "discover_folder_count", self.discover_folder_count)
        check_above_zero("discover_timeout_s", self.discover_timeout_s)


def check_page_address(page: PageSettings, jobs: JobServiceSettings) -> None:
    """Raise InvalidRequest for an address of other machines without a certificate or tokens."""
    check(
        is_loopback(page.host) or (jobs.tls_cert is not None and jobs.tokens is not None),
        "host",
        page.host,
        "is an address of this machine alone, such as 127.0.0.1, unless [jobs] has tls_cert, tls_key and tokens",
    )
