"""Request meter of a store: requests by class and outcome, bytes, latency, and their cost.

Owns: counting. Does not own: what a request is. The object stores count what goes over the wire, with every page of a
listing; ``measured`` counts the verbs of the contract.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from tallymark.backends.errors import AlreadyExists, NotFound, Throttled, Unavailable

RequestClass = Literal["put", "copy", "post", "list", "get", "get_range", "head", "delete", "stage"]
"""What a request does. ``stage`` opens or closes a staging directory, or starts a data file; it is not billed.
``get_range`` is billed as ``get``."""

Outcome = Literal["ok", "not_found", "exists", "refused", "throttled", "unknown"]
"""``exists``: the answer of a conditional put that lost. ``unknown``: no answer, or an unclear one.
``refused``: any other error."""

BUCKETS_PER_OCTAVE = 8
"""Buckets between a latency and its double: a reported latency is at most 6 % off."""

OCTAVES = 36
"""From a microsecond on: up to 19 hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """Prices of a store, as its operator reads them from the vendor's page: none is built in, since prices change.

    Prices are for 1,000 requests, and for a GB of 10**9 bytes, in the named currency.
    """

    currency: str
    put: float = 0.0
    """Price of PUT, COPY and POST."""
    list: float = 0.0
    get: float = 0.0
    """Price of GET, also of a range, and HEAD."""
    delete: float = 0.0
    sent_gb: float = 0.0
    received_gb: float = 0.0

    def requests(self, request_class: RequestClass, count: int) -> float:
        """Return what this many requests of one class cost, without their bytes."""
        return self._per_1000(request_class) * count / 1000

    def of(self, request: "ClassStatistics") -> float:
        return (
            self.requests(request.request_class, request.billed)
            + self.sent_gb * request.sent_bytes / 1e9
            + self.received_gb * request.received_bytes / 1e9
        )

    def _per_1000(self, request_class: RequestClass) -> float:
        match request_class:
            case "put" | "copy" | "post":
                return self.put
            case "get" | "get_range" | "head":
                return self.get
            case "list":
                return self.list
            case "delete":
                return self.delete
            case _:
                return 0.0


@dataclass(frozen=True, slots=True)
class ClassStatistics:
    """The requests of one class."""

    request_class: RequestClass
    outcomes: Mapping[Outcome, int]
    """Only those that occurred."""
    sent_bytes: int
    received_bytes: int
    p50_s: float
    """Latency, to 6 %; 0 where nothing was counted."""
    p99_s: float
    max_s: float

    @property
    def count(self) -> int:
        return sum(self.outcomes.values())

    @property
    def billed(self) -> int:
        """Requests except those that the store throttled. Vendors do not bill their own errors either; whether a
        missing answer was one cannot be known, so this is an upper bound.
        """
        return self.count - self.outcomes.get("throttled", 0)


@dataclass(frozen=True, slots=True)
class RequestStatistics:
    """A meter's reading."""

    classes: tuple[ClassStatistics, ...]
    """Classes that occurred, in the order of ``RequestClass``."""
    retries: int
    """Of all requests, those that repeated an earlier one."""

    @property
    def count(self) -> int:
        return sum(found.count for found in self.classes)

    @property
    def sent_bytes(self) -> int:
        return sum(found.sent_bytes for found in self.classes)

    @property
    def received_bytes(self) -> int:
        return sum(found.received_bytes for found in self.classes)

    def of(self, request_class: RequestClass) -> ClassStatistics:
        """Return the class's numbers; zeros where none occurred."""
        for found in self.classes:
            if found.request_class == request_class:
                return found
        return _Counts().statistics(request_class)

    def cost(self, prices: PriceList) -> float:
        """Return what these requests and bytes cost, in ``prices.currency``: an upper bound, see
        ``ClassStatistics.billed``.

        Storage itself, and what a vendor bills by the hour, is not in it.
        """
        return sum(prices.of(found) for found in self.classes)


class RequestMeter:
    """Counts requests. Threads of one process may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[RequestClass, _Counts] = {}
        self._retries = 0
        self.throttled = 0
        """Requests that the store throttled."""

    def record(
        self, request_class: RequestClass, outcome: Outcome, *, sent: int = 0, received: int = 0, seconds: float = 0.0
    ) -> None:
        """Record the end of a request: ``sent`` and ``received`` are bytes of objects, ``seconds`` from request to
        answer.
        """
        bucket = _bucket(seconds)
        with self._lock:
            counts = self._counts.get(request_class)
            if counts is None:
                counts = self._counts[request_class] = _Counts()
            counts.outcomes[outcome] = counts.outcomes.get(outcome, 0) + 1
            counts.sent += sent
            counts.received += received
            counts.buckets[bucket] += 1
            self.throttled += outcome == "throttled"
            if seconds > counts.max_s:
                counts.max_s = seconds

    def repeated(self) -> None:
        """Count the next request as a repeat."""
        with self._lock:
            self._retries += 1

    def statistics(self) -> RequestStatistics:
        with self._lock:
            found = [name for name in get_args(RequestClass) if name in self._counts]
            return RequestStatistics(tuple(self._counts[name].statistics(name) for name in found), self._retries)

    def __repr__(self) -> str:
        return f"<RequestMeter {self.statistics().count} requests>"


def outcome_of(error: BaseException) -> Outcome:
    """Return how a request is counted that ended with the error. A caller that stops waiting does not learn the
    outcome.
    """
    match error:
        case NotFound():
            return "not_found"
        case AlreadyExists():
            return "exists"
        case Throttled():
            return "throttled"
        case Unavailable():
            return "unknown"
        case Exception():
            return "refused"
        case _:
            return "unknown"


@dataclass(slots=True)
class _Counts:
    outcomes: dict[Outcome, int] = field(default_factory=dict)
    sent: int = 0
    received: int = 0
    max_s: float = 0.0
    buckets: list[int] = field(default_factory=lambda: [0] * (BUCKETS_PER_OCTAVE * OCTAVES))

    def statistics(self, request_class: RequestClass) -> ClassStatistics:
        return ClassStatistics(
            request_class,
            dict(self.outcomes),
            self.sent,
            self.received,
            self._quantile_s(0.50),
            self._quantile_s(0.99),
            self.max_s,
        )

    def _quantile_s(self, share: float) -> float:
        """Return the middle of the bucket that contains the quantile."""
        wanted = share * sum(self.buckets)
        seen = 0
        for bucket, count in enumerate(self.buckets):
            seen += count
            if count and seen >= wanted:
                return min(_middle_s(bucket), self.max_s)
        return 0.0


def _bucket(seconds: float) -> int:
    """Return a latency's place in a histogram of eighths of octaves: its leading bit, and the three that follow.

    The scheme of HdrHistogram (http://hdrhistogram.org): exact below 8 us, relative above.
    """
    micros = int(seconds * 1e6)
    if micros < BUCKETS_PER_OCTAVE:
        return max(0, micros)
    octave = micros.bit_length() - 4
    return min(octave * BUCKETS_PER_OCTAVE + (micros >> octave), BUCKETS_PER_OCTAVE * OCTAVES - 1)


def _middle_s(bucket: int) -> float:
    octave = max(0, bucket // BUCKETS_PER_OCTAVE - 1)
    least = bucket - octave * BUCKETS_PER_OCTAVE
    return ((least << octave) + 0.5 * (1 << octave)) / 1e6
