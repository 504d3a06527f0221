"""Storage that fails as told: requests and answers get lost, come late or never, call by call.

A fault names a verb of the contract, which paths it concerns and which of those calls (counted from 1; None is each).
Several faults may meet in one call: their delays add up, and it lands only if none of them keeps it from landing.

    storage = FaultyBackend(MemoryBackend(), slow("put_new", 0.03), lost_answer("put_new", "*/MARKERS1*", nth=1))

Nothing is random, and delays are ``anyio.sleep``: on trio's MockClock they cost no time.
"""

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal, get_args

import anyio

from tallymark.backends.contract import Backend, NewFile
from tallymark.backends.errors import BackendError, NotPermitted, Unavailable
from tests.support.wrapped import WrappedBackend

Verb = Literal[
    "get",
    "get_range",
    "put",
    "put_new",
    "list",
    "folders",
    "delete",
    "new_file",
    "publish",
    "open_staging",
    "close_staging",
]
Where = str | Callable[[str], bool]
"""Which paths: a pattern such as ``*/MARKERS1*`` (``*`` also matches ``/``), or a predicate."""

BLOCKING = ("new_file", "publish")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong with a call. Made by the functions below."""

    verb: Verb
    where: Where
    nth: int | None
    lands: bool = True
    error: BackendError | None = None
    before_s: float = 0.0
    """Seconds before the call reaches storage."""
    after_s: float = 0.0
    """Seconds from landing to the answer."""

    def __post_init__(self) -> None:
        assert self.verb in get_args(Verb), self.verb
        assert self.nth is None or self.nth >= 1, "calls are counted from 1"
        assert self.verb not in BLOCKING or not (self.before_s or self.after_s), f"{self.verb} blocks: no delays there"

    def concerns(self, verb: Verb, paths: Sequence[str]) -> bool:
        return verb == self.verb and any(self._holds(path) for path in paths)

    def _holds(self, path: str) -> bool:
        return fnmatchcase(path, self.where) if isinstance(self.where, str) else self.where(path)


def lost_request(verb: Verb, where: Where = "*", *, nth: int | None = None) -> Fault:
    """Nothing is done; the caller gets Unavailable."""
    return Fault(verb=verb, where=where, nth=nth, lands=False, error=Unavailable("the request was lost"))


def lost_answer(verb: Verb, where: Where = "*", *, nth: int | None = None) -> Fault:
    """It is done; the caller gets Unavailable."""
    return Fault(verb=verb, where=where, nth=nth, error=Unavailable("the answer was lost"))


def refused(verb: Verb, where: Where = "*", *, nth: int | None = None, error: BackendError | None = None) -> Fault:
    """Nothing is done; the caller gets the error, NotPermitted by default."""
    return Fault(verb=verb, where=where, nth=nth, lands=False, error=error or NotPermitted("refused"))


def slow(verb: Verb, before_s: float, where: Where = "*", *, nth: int | None = None, after_s: float = 0.0) -> Fault:
    """It lands after ``before_s`` and is answered ``after_s`` later."""
    return Fault(verb=verb, where=where, nth=nth, before_s=before_s, after_s=after_s)


def hanging(verb: Verb, where: Where = "*", *, nth: int | None = None, lands: bool = False) -> Fault:
    """No answer ever comes. ``lands`` tells whether it was done; the caller cannot know."""
    return Fault(verb=verb, where=where, nth=nth, lands=lands, after_s=math.inf)


@dataclass(frozen=True, slots=True)
class Call:
    """One call, in the order in which they were made."""

    verb: Verb
    paths: tuple[str, ...]
    started_s: float
    """``anyio.current_time()``; NaN for the blocking verbs."""


class FaultyBackend(WrappedBackend):
    """A backend around another one, with a script of faults and a record of all calls."""

    def __init__(self, inner: Backend, *script: Fault) -> None:
        super().__init__(inner)
        self.calls: list[Call] = []
        self._script: list[Fault] = []
        self._met: list[int] = []
        self.add(*script)

    def add(self, *faults: Fault) -> None:
        """Further faults, which count calls from now on."""
        self._script += faults
        self._met += [0] * len(faults)

    def heal(self) -> None:
        """No more faults."""
        self._script.clear()
        self._met.clear()

    def paths(self, verb: Verb) -> list[str]:
        """The paths that were asked for with this verb, in order."""
        return [path for call in self.calls if call.verb == verb for path in call.paths]

    def new_file(self, path: str, *, staging: str) -> NewFile:
        _raise_first(self._meet("new_file", (path,), started_s=math.nan))
        return super().new_file(path, staging=staging)

    def _publish(self, path: str, file: NewFile) -> None:
        met = self._meet("publish", (path,), started_s=math.nan)
        if all(fault.lands for fault in met):
            file.publish()
        _raise_first(met)

    async def _through(self, verb: Verb, paths: tuple[str, ...], do: Callable[[], Awaitable[Any]]) -> Any:
        """What ``do`` answers, unless a fault keeps the call from storage or the answer from the caller."""
        met = self._meet(verb, paths, started_s=anyio.current_time())
        await _sleep(sum(fault.before_s for fault in met))
        answer, error = None, None
        if all(fault.lands for fault in met):
            try:
                answer = await do()
            except BackendError as caught:
                error = caught
        await _sleep(sum(fault.after_s for fault in met))
        _raise_first(met)
        if error:
            raise error
        return answer

    def _meet(self, verb: Verb, paths: tuple[str, ...], *, started_s: float) -> Sequence[Fault]:
        """Record the call, and say which faults it meets."""
        self.calls.append(Call(verb, paths, started_s))
        met = []
        for index, fault in enumerate(self._script):
            if fault.concerns(verb, paths):
                self._met[index] += 1
                if fault.nth in (None, self._met[index]):
                    met.append(fault)
        return met


async def _sleep(seconds: float) -> None:
    if math.isinf(seconds):
        await anyio.sleep_forever()
    elif seconds:
        await anyio.sleep(seconds)


def _raise_first(met: Sequence[Fault]) -> None:
    for fault in met:
        if fault.error:
            raise type(fault.error)(*fault.error.args)
