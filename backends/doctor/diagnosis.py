"""Findings of the doctor."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tallymark.backends.doctor.file_system import LocalFileSystem

Verb = Literal["put_new", "put", "get", "list", "delete"]
Result = Literal["kept", "broken", "untried"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One promise, and whether it was kept."""

    promise: str
    result: Result
    detail: str


@dataclass(frozen=True, slots=True)
class Latency:
    """How long one verb took, one call after the other."""

    verb: Verb
    count: int
    median_s: float
    mean_s: float
    p99_s: float
    """With few calls, the slowest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    url: str
    """The directory that was examined."""
    findings: Sequence[Finding]
    latencies: Sequence[Latency] = ()
    clock_skew_s: float | None = None
    """How far the store's clock is ahead of this machine's, to about a second; None if unknown."""
    ground: LocalFileSystem | None = None
    """Of a local directory."""
    remarks: Sequence[str] = ()
    """Facts worth knowing that do not break a promise."""
    left: Sequence[str] = ()
    """What the doctor could not remove."""
    seconds: float

    @property
    def is_fit(self) -> bool:
        """Whether every promise was tried and kept."""
        return all(finding.result == "kept" for finding in self.findings)

    @property
    def verdict(self) -> str:
        """A sentence: fit or not, and why."""
        for result in ("broken", "untried"):
            failed = [finding for finding in self.findings if finding.result == result]
            if failed:
                more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
                return f"not fit: {failed[0].promise}: {failed[0].detail}{more}"
        return "fit: every promise that was tried was kept"
