"""What the world does to requests: how long they take, and which of them get lost."""

import math
import random
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
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
    """Probability that a request is answered as lost and lands up to ``late_s`` later, whatever happened meanwhile."""
    late_s: float = 0.0
    throttled: float = 0.0
    twice: float = 0.0
    """Probability that a put or a delete is sent a second time, as the first was not answered; the second one's fate is
    drawn as ever, and the first lands up to ``late_s`` later, whatever the second came to."""
    outage: tuple[str, str] | None = None
    """The first request of this verb whose path holds this begins an outage: nobody is answered for ``outage_s``."""
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
    def is_kind_to_storage(self) -> bool:
        return not (self.tail or self.lost_request or self.lost_answer or self.late or self.throttled)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """Of one request to storage."""

    lands_after_s: float | None
    """None: never."""
    answered_after_s: float
    """Counted from its landing where it lands and the answer is told, else from now."""
    is_answered: bool
    """False: Unavailable is all that the caller hears."""
    name: str = ""
    """What went wrong; empty if nothing did."""


def fate(weather: Weather, chance: random.Random) -> Fate:
    half_s = weather.put_s / 2
    if weather.spread:
        half_s *= math.exp(weather.spread * chance.gauss(0, 1))
    if weather.is_kind_to_storage:
        return Fate(lands_after_s=half_s, answered_after_s=half_s, is_answered=True)
    return _unkind(weather, chance, half_s)


def fate_in_outage(weather: Weather, chance: random.Random) -> Fate:
    """It lands or it does not, and nobody is told."""
    name = chance.choice(("lost request", "lost answer"))
    half_s = weather.put_s / 2
    return _mishap(name, weather, chance, half_s, half_s + chance.choice((0.5, 5.0)))


def heard_after_s(fate: Fate) -> float:
    """Seconds until the caller hears of it: ``answered_after_s`` counts from the landing of what is told."""
    return fate.answered_after_s + (fate.lands_after_s or 0.0 if fate.is_answered else 0.0)


def later(fate: Fate, seconds: float) -> Fate:
    """The same for a request that is sent only then."""
    if fate.lands_after_s is not None:
        fate = replace(fate, lands_after_s=fate.lands_after_s + seconds)
    return fate if fate.is_answered else replace(fate, answered_after_s=fate.answered_after_s + seconds)


def _unkind(weather: Weather, chance: random.Random, half_s: float) -> Fate:
    drawn = chance.random()
    silence_s = half_s + chance.choice((0.0, 0.5, 5.0))
    for probability, name in (
        (weather.lost_request, "lost request"),
        (weather.throttled, "throttled"),
        (weather.lost_answer, "lost answer"),
        (weather.late, "late landing"),
        (weather.tail, "tail before"),
        (weather.tail, "tail after"),
    ):
        if drawn < probability:
            return _mishap(name, weather, chance, half_s, silence_s)
        drawn -= probability
    return Fate(lands_after_s=half_s, answered_after_s=half_s, is_answered=True)


def _mishap(name: str, weather: Weather, chance: random.Random, half_s: float, silence_s: float) -> Fate:
    long_s = weather.tail_s * chance.random()
    match name:
        case "lost request":
            return Fate(lands_after_s=None, answered_after_s=silence_s, is_answered=False, name=name)
        case "throttled":
            return Fate(lands_after_s=None, answered_after_s=half_s, is_answered=False, name=name)
        case "lost answer":
            return Fate(lands_after_s=half_s, answered_after_s=silence_s, is_answered=False, name=name)
        case "late landing":
            late_s = silence_s + weather.late_s * chance.random()
            return Fate(lands_after_s=late_s, answered_after_s=silence_s, is_answered=False, name=name)
        case "tail before":
            return Fate(lands_after_s=half_s + long_s, answered_after_s=half_s, is_answered=True, name=name)
        case _:
            return Fate(lands_after_s=half_s, answered_after_s=half_s + long_s, is_answered=True, name=name)
