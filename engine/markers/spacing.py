"""Spacing of flush starts where concurrent flushes delay each other, found by trials.

Four puts under way at once cost a distant store nothing, and acks are soonest when a put starts every quarter of the
time that one takes. Where the store is this machine, puts share its processors, its disk and an interpreter with
whoever asks for markers; then fewer and larger ones are acked sooner, and leave more for the rest. How far apart is
best depends on all of that, and so it is tried, a step at a time (hill climbing): some flushes further apart, or
closer, between as many as it was before.

Owns: what is tried, when, and the verdict. Does not own: the pace that follows from it (``pace``).
"""

from dataclasses import dataclass, field

from tallymark.engine.markers.put_times import PutTimes

TRIAL_FLUSHES = 16
"""That are looked at of each: before the trial, in it, and after it. Where a store's times are lognormal (99th
percentile five medians), one mean in three is more than a fifth off."""

SETTLING_FLUSHES = 4
"""Before each of the three, that are not looked at: they began, or their markers came, when it was otherwise."""

HOPELESS_FLUSHES = 3
"""A trial whose first flushes are acked no sooner than those before it is over."""

GAP_FLUSHES_MIN = 256
DOUBLINGS_MAX = 6
"""Between two trials; doubled with each that was in vain, so often at most. At a distant store, where all are, the mean
ack of the first thousand flushes is one or two parts in a hundred later for it, and less so with time."""

GAP_FLUSHES_AFTER_GAIN = 16
"""After a trial that was not in vain, the next step is tried soon, and then the other way."""

GAIN_LEAST = 0.15
"""By how much sooner acks are to be for flushes to stay further apart: than before and than after, whichever is better,
since one stall makes anything look good beside it. To be closer it is enough to be no later than the worse of them."""

GROWTH_LEAST = 1.2
"""Further apart, a flush has to carry so many times as many markers, or it was not that which made acks sooner."""

BATCH_LEAST = 2
"""Where flushes carry fewer markers than this in the mean, there is nothing to gather, and nothing is tried."""

STEP = 1.5
"""From one distance to the next."""

MEDIANS_MAX = 4
"""Flushes are no further apart than this many median puts, whatever was found when puts took longer."""


@dataclass(slots=True)
class _Seen:
    """What some flushes came to."""

    flushes: int = 0
    markers: int = 0
    ack_total_s: float = 0.0

    def add(self, ack_s: float, markers: int) -> None:
        self.flushes += 1
        self.markers += markers
        self.ack_total_s += ack_s * markers

    @property
    def is_full(self) -> bool:
        return self.flushes == TRIAL_FLUSHES

    @property
    def ack_s(self) -> float:
        """The mean over markers."""
        return self.ack_total_s / self.markers


@dataclass(slots=True)
class _Trial:
    apart_s: float
    is_closer: bool
    before: _Seen = field(default_factory=_Seen)
    during: _Seen = field(default_factory=_Seen)
    after: _Seen = field(default_factory=_Seen)

    @property
    def phase(self) -> _Seen | None:
        """What the next flush is counted in; None: the trial is over."""
        return next((seen for seen in (self.before, self.during, self.after) if not seen.is_full), None)

    @property
    def is_hopeless(self) -> bool:
        if self.before.is_full and self.before.markers < BATCH_LEAST * TRIAL_FLUSHES:
            return not self.is_closer
        return self.during.flushes == HOPELESS_FLUSHES and self.during.ack_s >= self.before.ack_s

    @property
    def is_gain(self) -> bool:
        """Of a trial that is over."""
        others = (self.before, self.after)
        if self.is_closer:
            return self.during.ack_s <= max(seen.ack_s for seen in others)
        has_grown = self.during.markers >= GROWTH_LEAST * max(seen.markers for seen in others)
        return has_grown and self.during.ack_s <= (1 - GAIN_LEAST) * min(seen.ack_s for seen in others)


class Spacing:
    """Sync and pure; in seconds."""

    def __init__(self, closest: float) -> None:
        """``closest``: how far apart flushes are that nothing keeps further apart, in puts."""
        self._closest = closest
        self._puts = PutTimes()
        self._apart_s = 0.0
        self._trial: _Trial | None = None
        self._closer_next = False
        self._in_vain = 0
        """Trials since the last that was not."""
        self._flushes = 0
        """Since the last trial, or since its last phase."""

    @property
    def apart_s(self) -> float:
        """No two flushes are to start closer; 0: as close as the pace says."""
        trial = self._trial
        apart_s = trial.apart_s if trial is not None and trial.phase is trial.during else self._apart_s
        return min(apart_s, MEDIANS_MAX * self._median_s) if apart_s else 0.0

    def measured(self, ack_s: float, markers: int, put_s: float) -> None:
        """A flush of so many markers was good, after ``put_s``, and ``ack_s`` after they were asked for in the mean."""
        self._puts.add(put_s)
        self._flushes += 1
        if self._trial is None:
            if self._flushes >= self._gap_flushes:
                self._flushes = 0
                self._begin_trial()
        elif self._flushes > SETTLING_FLUSHES:
            self._look(self._trial, ack_s, markers)

    @property
    def _gap_flushes(self) -> int:
        if self._apart_s and self._in_vain < 2:  # neither way, or one of them, was tried since the last gain
            return GAP_FLUSHES_AFTER_GAIN
        return GAP_FLUSHES_MIN << min(self._in_vain, DOUBLINGS_MAX)

    @property
    def _median_s(self) -> float:
        """Of the last puts: the 20 that one stall may have held up do not move it."""
        return self._puts.quantile_s(0.5) or 0.0

    def _begin_trial(self) -> None:
        self._apart_s = self.apart_s  # by now
        if self._apart_s <= self._closest * self._median_s:
            self._apart_s = 0.0
        if not self._apart_s:
            self._trial = _Trial(self._median_s, is_closer=False)
        elif self._closer_next:
            closer_s = self._apart_s / STEP
            self._trial = _Trial(closer_s if closer_s > self._closest * self._median_s else 0.0, is_closer=True)
        else:
            self._trial = _Trial(self._apart_s * STEP, is_closer=False)

    def _look(self, trial: _Trial, ack_s: float, markers: int) -> None:
        phase = trial.phase
        assert phase is not None
        phase.add(ack_s, markers)
        if trial.is_hopeless:
            self._end_trial(trial, is_gain=False)
        elif trial.phase is None:
            self._end_trial(trial, is_gain=trial.is_gain)
        elif phase.is_full:
            self._flushes = 0

    def _end_trial(self, trial: _Trial, *, is_gain: bool) -> None:
        if is_gain:
            self._apart_s = trial.apart_s
        self._in_vain = 0 if is_gain else self._in_vain + 1
        self._closer_next = trial.is_closer == is_gain
        self._trial = None
        self._flushes = 0
