"""Fault profile of a run: how long requests take, which of them get lost, and how the seed decides both."""

import math
import random
from dataclasses import dataclass, replace
from typing import Any

from tallymark.engine.markers.segment import FIRST_INCARNATION, segment_name


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultProfile:
    """Drawn once a run. A calm one loses nothing and is never slow."""

    put_s: float = 0.01
    """Median time of a request; half of it passes before it lands."""
    spread: float = 0.0
    """Sigma of the lognormal around that."""
    tail: float = 0.0
    """Probability that a request takes ``tail_s`` longer, before it lands or after."""
    tail_s: float = 0.0
    lost_request: float = 0.0
    lost_answer: float = 0.0
    late: float = 0.0
    """Probability that a request is answered as lost and lands up to ``late_s`` later, whatever happened in between."""
    late_s: float = 0.0
    throttled: float = 0.0
    twice: float = 0.0
    """Probability that a put or a delete is sent a second time, as the first was not answered; the second one's fate is
    drawn as ever, and the first lands up to ``late_s`` later, whatever the second came to."""
    outage: tuple[str, str] | None = None
    """The first request of this verb whose path has this starts an outage: no request is answered for ``outage_s``."""
    outage_s: float = 0.0
    page_size: int = 1000
    """Entries of a listing that are read in one go."""
    delete_size: int = 1000
    """Names that are deleted in one go: a disk takes one at a time, S3 a thousand."""
    frame_s: float = 0.001
    reset: float = 0.0
    """Probability that a network connection breaks with a frame."""
    unreachable: float = 0.0
    """Probability that a host cannot reach another at all, for ``unreachable_s`` at a time."""
    unreachable_s: float = 0.0

    @property
    def is_storage_reliable(self) -> bool:
        return not (self.tail or self.lost_request or self.lost_answer or self.late or self.throttled)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """Of one request to storage."""

    lands_after_s: float | None
    """None: never."""
    answered_after_s: float
    """Counted from its landing where it lands and is answered, otherwise from now."""
    is_answered: bool
    """False: Unavailable is all that the caller hears."""
    name: str = ""
    """What went wrong; empty if nothing did."""


def fate(faults: FaultProfile, chance: random.Random) -> Fate:
    half_s = faults.put_s / 2
    if faults.spread:
        half_s *= math.exp(faults.spread * chance.gauss(0, 1))
    if faults.is_storage_reliable:
        return Fate(lands_after_s=half_s, answered_after_s=half_s, is_answered=True)
    return _unkind(faults, chance, half_s)


def fate_in_outage(faults: FaultProfile, chance: random.Random) -> Fate:
    """Draw a request that lands or does not, and is not answered."""
    name = chance.choice(("lost request", "lost answer"))
    half_s = faults.put_s / 2
    return _mishap(name, faults, chance, half_s, half_s + chance.choice((0.5, 5.0)))


HANGING_S = 150.0
"""Longer than ``CommitSettings.decision_timeout_s``."""


def fate_of_entry(name: str, faults: FaultProfile, chance: random.Random) -> Fate:
    """Return the planned fate of the put of an entry: ``slow``, or that of a request which is not answered."""
    slow_s, half_s = 20 * faults.put_s, faults.put_s / 2
    if name == "slow":
        return Fate(lands_after_s=slow_s, answered_after_s=half_s, is_answered=True, name="tail before")
    if name == "hanging":
        return Fate(lands_after_s=half_s, answered_after_s=HANGING_S, is_answered=False, name="lost answer")
    lands_s = {"lost request": None, "lost answer": half_s, "late landing": slow_s * (1 + chance.random())}[name]
    return Fate(lands_after_s=lands_s, answered_after_s=slow_s, is_answered=False, name=name)


def reported_after_s(fate: Fate) -> float:
    """Return the seconds until the caller gets the result."""
    return fate.answered_after_s + (fate.lands_after_s or 0.0 if fate.is_answered else 0.0)


def later(fate: Fate, seconds: float) -> Fate:
    """The same for a request that is sent only then."""
    if fate.lands_after_s is not None:
        fate = replace(fate, lands_after_s=fate.lands_after_s + seconds)
    return fate if fate.is_answered else replace(fate, answered_after_s=fate.answered_after_s + seconds)


def _unkind(faults: FaultProfile, chance: random.Random, half_s: float) -> Fate:
    drawn = chance.random()
    silence_s = half_s + chance.choice((0.0, 0.5, 5.0))
    for probability, name in (
        (faults.lost_request, "lost request"),
        (faults.throttled, "throttled"),
        (faults.lost_answer, "lost answer"),
        (faults.late, "late landing"),
        (faults.tail, "tail before"),
        (faults.tail, "tail after"),
    ):
        if drawn < probability:
            return _mishap(name, faults, chance, half_s, silence_s)
        drawn -= probability
    return Fate(lands_after_s=half_s, answered_after_s=half_s, is_answered=True)


def _mishap(name: str, faults: FaultProfile, chance: random.Random, half_s: float, silence_s: float) -> Fate:
    long_s = half_s + faults.tail_s * chance.random()
    late_s = silence_s + faults.late_s * chance.random() if name == "late landing" else 0.0
    lands_s, answered_s = {
        "lost request": (None, silence_s),
        "throttled": (None, half_s),
        "lost answer": (half_s, silence_s),
        "late landing": (late_s, silence_s),
        "tail before": (long_s, half_s),
        "tail after": (half_s, long_s),
    }[name]
    is_answered = name.startswith("tail")
    return Fate(lands_after_s=lands_s, answered_after_s=answered_s, is_answered=is_answered, name=name)


FIRST_SEGMENT = f"/{segment_name(FIRST_INCARNATION, 0)}"

OUTAGES = (("put", "/log/"), ("put", "/log/"), ("put", FIRST_SEGMENT), ("delete data", ""), ("delete", "/.temp/"))


def draw_fault_profile(chance: random.Random, kinds: set[str]) -> FaultProfile:
    faults: dict[str, Any] = {}
    if "storage" in kinds:
        for name in chance.sample(("lost_request", "lost_answer", "late", "throttled", "tail"), chance.choice((1, 2))):
            faults[name] = chance.choice((0.01, 0.03, 0.1))
        faults |= {"tail_s": chance.choice((1, 20, 100, 100)), "late_s": chance.choice((1, 20, 300, 300))}
        for name in ("late", "tail"):
            if name in faults:
                faults[name] *= 2  # these seldom meet what they could harm
        if chance.random() < 0.6:
            faults |= {"outage": chance.choice(OUTAGES), "outage_s": chance.choice((1, 30, 200, 200))}
    if "network" in kinds:
        faults["reset"] = chance.choice((0.0, 0.02, 0.1))
        faults |= {"unreachable": chance.choice((0.0, 0.3, 0.7)), "unreachable_s": chance.choice((1, 30, 200))}
    return FaultProfile(
        put_s=chance.choice((0.002, 0.02, 0.2)),
        spread=chance.choice((0.0, 0.5, 1.0)),
        page_size=chance.choice((2, 2, 7, 1000)),
        delete_size=chance.choice((1, 1, 2, 1000)),
        **faults,
    )


def with_repeats(faults: FaultProfile, seed: int) -> FaultProfile:
    """In every sixth run the store's client sends some requests twice, as it does whose first one was not answered."""
    chance = random.Random(f"{seed}/repeats")
    if chance.random() >= 1 / 6:
        return faults
    return replace(faults, twice=chance.choice((0.02, 0.1, 0.5)), late_s=chance.choice((1, 20, 300)))
