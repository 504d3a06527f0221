"""What a side is: one way of knowing which files a partition holds."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from tallymark.bench.views.latency import Latency
from tallymark.bench.views.load import Load
from tallymark.bench.views.question import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """From nothing to answers. None: the side has no such thing."""

    first_s: float | None = None
    """Until one partition is answered for."""
    ready_s: float | None = None
    """Until any is."""
    grown_bytes: int | None = None
    """Of memory, meanwhile."""
    requests: Mapping[str, int] | None = None
    """That a store was asked meanwhile, by kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookUps:
    alone: Latency | None = None
    load: Load | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """A commit that was there."""

    synced_s: float
    """Until the side would answer with it."""
    answered_s: float
    """And has, for one partition."""


class OpenSide(Protocol):
    def look_up(self) -> LookUps: ...

    def follow(self, question: Question) -> Followed | None:
        """None: it keeps nothing that would have to."""
        ...


class OpenReady:
    """Of which only what it takes to be ready is measured."""

    def look_up(self) -> LookUps:
        return LookUps()

    def follow(self, question: Question) -> None:
        return None


class Side(Protocol):
    """Opened where it is measured: it answers, and says what it took, until the block ends.

    Opening raises OSError, SubprocessError or TallymarkError where the side cannot take part.
    """

    @property
    def name(self) -> str: ...

    @property
    def title(self) -> str: ...

    def opened(self) -> AbstractContextManager[tuple[OpenSide, Opening]]: ...
