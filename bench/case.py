"""What is measured: a verb, how much of it, and how many at once."""

from dataclasses import dataclass
from typing import Literal

Verb = Literal["get", "put", "put_new", "list", "delete", "data_file"]

SMALL = 1024
"""A heartbeat, a marker segment of a few names, a log entry."""

MB = 1_000_000


SAMPLE_OBJECTS_MAX = 400
SAMPLE_BYTES_MAX = 128 * MB

TURNS = 4
"""How often each of several callers calls in one sample, at least: beginning and ending together is not the point."""


@dataclass(frozen=True, slots=True)
class Case:
    verb: Verb
    data_bytes: int = SMALL
    object_count: int = 1
    """Objects of one call: as many are listed, or deleted."""
    concurrency: int = 1
    """Calls in flight. Above 1 a row shows the time that passes for each call, not the time it takes."""

    @property
    def call_count_max(self) -> int:
        """Calls in one sample at most: what they make lies there until the sample is over."""
        made = self.object_count if self.verb == "delete" else 1
        return max(min(SAMPLE_OBJECTS_MAX // made, SAMPLE_BYTES_MAX // self.data_bytes), self.step)

    @property
    def step(self) -> int:
        """Calls in one sample at least, and what their number is a multiple of: of calls at once, a few turns each."""
        return self.concurrency * (TURNS if self.concurrency > 1 else 1)

    @property
    def label(self) -> str:
        name = self.verb.replace("_", " ") if self.verb == "data_file" else self.verb
        at_once = f", {self.concurrency} at once" if self.concurrency > 1 else ""
        return f"{name} {self._amount}{at_once}"

    @property
    def _amount(self) -> str:
        if self.verb in ("list", "delete"):
            return f"of {self.object_count:,}"
        return f"{self.data_bytes // MB} MB" if self.data_bytes >= MB else f"{self.data_bytes // 1024} KiB"


CASES = (
    Case("get"),
    Case("put"),
    Case("put_new"),
    Case("list", object_count=500),
    Case("delete"),
    Case("delete", object_count=100),
    Case("data_file", data_bytes=MB),
    Case("data_file", data_bytes=64 * MB),
    Case("get", concurrency=32),
    Case("put", concurrency=32),
    Case("put_new", concurrency=32),
)

QUICK = (
    Case("get"),
    Case("put"),
    Case("put_new"),
    Case("list", object_count=100),
    Case("delete"),
    Case("data_file", data_bytes=MB),
    Case("put_new", concurrency=8),
)
"""Every verb, on as few objects as say something."""
