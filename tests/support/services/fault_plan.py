"""What goes wrong between a client and a store that speaks HTTP: kinds of faults, by chance or at a chosen request."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from urllib.parse import unquote

from tests.support.services.http_message import Answer, Request


class Kind(Enum):
    STATUS_BEFORE = "an error is answered, and nothing was done"
    STATUS_AFTER = "an error is answered, though it was done"
    RESET_BEFORE = "the connection is reset, and nothing was done"
    RESET_AFTER = "the connection is reset after it was done, before a byte of the answer"
    TORN = "the connection is reset in the middle of the answer's body"
    DELAY = "the request waits on its way; a client that has gone meanwhile does not call it back"
    SLOW = "request and answer crawl"
    FALSE_412 = "it is answered that a put-if-absent found its name taken, and nothing was done"
    TWICE = "it is done twice at once, and the second answer is returned"
    AGAIN = "it is done and answered, and done once more a while later"

    def may_befall(self, request: Request) -> bool:
        """Whether clients, their repeats and balancers can make it happen: they repeat no put of a data file late."""
        if self is Kind.FALSE_412:
            return is_conditional_write(request)
        is_write = request.method in ("PUT", "POST", "DELETE")
        is_data_file = request.method == "PUT" and "/.hoodie/" not in unquote(request.target)
        return {Kind.TWICE: is_write, Kind.AGAIN: is_write and not is_data_file}.get(self, True)


@dataclass(frozen=True, slots=True)
class Fault:
    kind: Kind
    status: int = 503
    """Of STATUS_BEFORE and STATUS_AFTER; that of FALSE_412 is in its name."""
    delay_s: float = 0.05
    """Of DELAY, and of AGAIN."""
    bytes_per_s: float = 64 * 1024.0
    """Of SLOW."""

    @property
    def name(self) -> str:
        """What is counted."""
        is_status = self.kind in (Kind.STATUS_BEFORE, Kind.STATUS_AFTER)
        return self.kind.name.lower().replace("_", " ") + (f" {self.status}" if is_status else "")

    def answer(self) -> Answer:
        """The error, in the form that S3 and the XML API of GCS share."""
        status = 412 if self.kind is Kind.FALSE_412 else self.status
        code = CODES.get(status, "InternalError")
        body = f"<?xml version='1.0' encoding='UTF-8'?><Error><Code>{code}</Code><Message>injected</Message></Error>"
        return Answer(status, {"content-type": "application/xml"}, body.encode())


CODES = {
    409: "ConditionalRequestConflict",
    412: "PreconditionFailed",
    429: "TooManyRequests",
    500: "InternalError",
    503: "SlowDown",
}


@dataclass(slots=True)
class Chance:
    """Each kind comes over a request with the same probability, one at most."""

    seed: int
    rate: float
    """Of each kind."""
    kinds: Sequence[Kind] = tuple(Kind)
    delay_s_max: float = 0.2
    long_delay: float = 0.0
    """The part of the delays that last ``long_delay_s``: longer than the client's patience."""
    long_delay_s: float = 0.0
    bytes_per_s: float = 64 * 1024.0
    _random: Random = field(init=False, repr=False)

    def __post_init__(self) -> None:
        assert self.rate * len(self.kinds) <= 1
        self._random = Random(self.seed)

    def draw(self, request: Request) -> Fault | None:
        choice = int(self._random.random() / self.rate) if self.rate else len(self.kinds)
        if choice >= len(self.kinds):
            return None
        kind = self.kinds[choice]
        if not kind.may_befall(request):
            return None
        return Fault(kind, self._status(kind, request), self._delay_s(), self.bytes_per_s)

    def _status(self, kind: Kind, request: Request) -> int:
        """409 is the answer to two conditional writes at once; 409 and 429 both say that nothing was done."""
        if kind is Kind.STATUS_AFTER:
            return self._random.choice((500, 503))
        return self._random.choice((500, 503, 429, 409) if is_conditional_write(request) else (500, 503, 429))

    def _delay_s(self) -> float:
        is_long = self._random.random() < self.long_delay
        return self.long_delay_s if is_long else self._random.uniform(0, self.delay_s_max)


@dataclass(slots=True)
class Scripted:
    """A fault for the next requests that match, once so many of them have passed."""

    fault: Fault
    method: str
    path: re.Pattern[str]
    skip: int
    times: int
    happened: int = 0

    def take(self, request: Request) -> Fault | None:
        if (
            self.times == self.happened
            or request.method != self.method
            or not self.path.search(unquote(request.target))
        ):
            return None
        if self.skip:
            self.skip -= 1
            return None
        self.happened += 1
        return self.fault


@dataclass(slots=True)
class FaultPlan:
    """Which fault a request meets, and how many have happened of each."""

    chance: Chance | None = None
    scripted: list[Scripted] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    """By name."""
    requests: Counter[str] = field(default_factory=Counter)
    """By method."""

    def next(self, request: Request) -> Fault | None:
        self.requests[request.method] += 1
        script = next((fault for each in self.scripted if (fault := each.take(request))), None)
        fault = script or (self.chance.draw(request) if self.chance else None)
        if fault:
            self.faults[fault.name] += 1
        return fault


def is_conditional_write(request: Request) -> bool:
    return request.method in ("PUT", "POST") and not {
        "if-none-match",
        "if-match",
        "x-goog-if-generation-match",
    }.isdisjoint(request.headers)
