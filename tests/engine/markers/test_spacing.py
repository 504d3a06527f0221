"""How far apart flushes start, by acks that are told, of a store whose puts hold each other up and one whose do not."""

import math
from collections.abc import Callable
from random import Random

import anyio
import pytest

from tallymark.backends.memory import MemoryBackend
from tallymark.engine.markers import open_marker_engine
from tallymark.engine.markers.pace import Pace
from tallymark.engine.markers.spacing import GAP_FLUSHES_MIN, MEDIANS_MAX, STEP, TRIAL_FLUSHES, Spacing
from tests.engine.markers.recorded import INSTANT
from tests.engine.markers.requests import NO_MERGES, Requests
from tests.support.loops import on_virtual_time

pytestmark = pytest.mark.slow

BEST_S = 0.008


def spacing_by_quarters() -> Spacing:
    return Spacing(0.25)


def held_up(apart_s: float) -> float:
    """The mean ack of a store in this machine: soonest where flushes start 8 ms apart."""
    return 0.020 if not apart_s else 0.008 * (1 + abs(math.log(apart_s / BEST_S)))


def distant(apart_s: float) -> float:
    """Of one whose puts take 30 ms, however many there are."""
    return 0.03 + max(apart_s, 0.03 / 4) / 2


def flush(
    spacing: Spacing, ack_s: Callable[[float], float], count: int, *, put_s: float = 0.004, rate: float = 5000.0
) -> list[float]:
    """So many flushes; how far apart each was from the next."""
    seen = []
    for _ in range(count):
        seen.append(spacing.apart_s)
        apart_s = max(spacing.apart_s, put_s / 4)
        spacing.measured(ack_s(spacing.apart_s), round(rate * apart_s), put_s)
    return seen


def test_flushes_are_as_close_as_the_pace_says_until_something_else_was_tried():
    assert set(flush(spacing_by_quarters(), held_up, GAP_FLUSHES_MIN)) == {0.0}


def test_where_flushes_hold_each_other_up_they_come_to_be_about_as_far_apart_as_is_best():
    spacing = spacing_by_quarters()
    flush(spacing, held_up, 2000)
    seen = flush(spacing, held_up, 20_000)
    near = [apart_s for apart_s in seen if BEST_S / STEP <= apart_s <= BEST_S * STEP]
    assert len(near) > 0.98 * len(seen)


def test_where_they_do_not_they_stay_close_and_less_and_less_is_tried():
    spacing = spacing_by_quarters()
    seen = flush(spacing, distant, 30_000, put_s=0.03)
    tried = [number for number, apart_s in enumerate(seen) if apart_s]
    assert tried[0] < 2 * GAP_FLUSHES_MIN
    assert len(tried) < len(seen) / 500
    assert len([number for number in tried if number > 15_000]) < len(tried) / 2


SPREAD = math.log(5) / 2.326
"""So that the 99th percentile is five medians."""


def wide_and_steady(seed: int, late_share: float) -> tuple[float, float]:
    """The mean ack at a store whose times are lognormal, some a second longer, and what it would be without trials."""
    random, spacing = Random(seed), spacing_by_quarters()
    mean_s = 0.002 * math.exp(SPREAD**2 / 2)
    total_s = least_s = 0.0
    count = 20_000
    for _ in range(count):
        put_s = random.lognormvariate(math.log(0.002), SPREAD) + (random.random() < late_share)
        apart_s = max(spacing.apart_s, mean_s / 4)
        total_s += put_s + apart_s / 2
        least_s += put_s + mean_s / 8
        spacing.measured(put_s + apart_s / 2, round(8000 * apart_s), put_s)
    return total_s / count, least_s / count


@pytest.mark.parametrize("late_share", [0.0, 0.01])
@pytest.mark.parametrize("seed", range(5))
def test_a_store_whose_times_are_spread_wide_is_not_taken_for_one_whose_puts_hold_each_other_up(seed, late_share):
    found_s, least_s = wide_and_steady(seed, late_share)
    assert found_s < 1.03 * least_s


@pytest.mark.parametrize("seed", range(5))
def test_where_a_flush_carries_a_marker_or_two_nothing_is_tried(seed):
    random, spacing = Random(seed), spacing_by_quarters()
    for _ in range(20_000):
        put_s = random.lognormvariate(math.log(0.03), SPREAD) + (random.random() < 0.01)
        spacing.measured(put_s, random.choice((1, 1, 2)), put_s)
        assert spacing.apart_s == 0


def test_a_put_that_takes_no_time_at_all_is_none_to_divide_by():
    assert set(flush(spacing_by_quarters(), lambda _: 0.0, 5000, put_s=0.0)) == {0.0}


def test_flushes_are_never_further_apart_than_some_puts_whatever_was_found_when_these_took_longer():
    spacing = spacing_by_quarters()
    flush(spacing, held_up, 2000)
    assert spacing.apart_s > MEDIANS_MAX * 0.001
    flush(spacing, held_up, 200, put_s=0.001)
    assert spacing.apart_s <= MEDIANS_MAX * 0.001


@pytest.mark.parametrize("when", range(250, 350, 3))
def test_one_stall_beside_a_trial_does_not_make_it_a_gain(when):
    spacing = spacing_by_quarters()
    flush(spacing, distant, when, put_s=0.03)
    flush(spacing, lambda _: 3.0, 1, put_s=3.0, rate=50.0)  # about as many markers as before
    flush(spacing, distant, 400 - when, put_s=0.03)
    assert spacing.apart_s == 0


def test_acks_that_are_sooner_without_larger_flushes_are_not_so_for_the_distance():
    spacing = spacing_by_quarters()
    for _ in range(400):
        spacing.measured(0.02 if spacing.apart_s else 0.03, 5, 0.03)
    assert spacing.apart_s == 0


@pytest.mark.parametrize("when", range(230, 330, 10))
def test_what_comes_after_throttling_is_not_taken_for_a_gain(when):
    pace, random, now = Pace("auto"), Random(1), 0.0
    for number in range(1000):
        now += pace.delay_s(now)
        if number == when:
            pace.throttled(now)
        pace.started(now)
        waited_s = pace.interval_s / 2
        put_s = 0.002 * random.uniform(0.9, 1.1)
        pace.measured(put_s, started=now)
        pace.acked(put_s, started=now, ack_s=put_s + waited_s, markers=max(2, round(5000 * pace.interval_s)))
        now += 0.0001
        assert pace.is_held or pace.interval_s < 0.0025, "as long as a put at most, in a trial"
    assert pace.interval_s == pytest.approx(0.0005, rel=0.05)


def test_flushes_that_no_longer_hold_each_other_up_come_closer_again_until_the_pace_decides():
    spacing = spacing_by_quarters()
    flush(spacing, held_up, 2000)
    assert spacing.apart_s
    seen = flush(spacing, lambda apart_s: 0.002 + max(apart_s, 0.0005) / 2, 20_000, put_s=0.002)
    assert seen[-1] == 0


def test_a_step_in_the_wrong_direction_is_taken_back_after_a_few_flushes():
    spacing = spacing_by_quarters()
    seen = flush(spacing, distant, 2 * GAP_FLUSHES_MIN, put_s=0.03)
    assert 0 < len([apart_s for apart_s in seen if apart_s]) < TRIAL_FLUSHES


class CrowdedStore(MemoryBackend):
    """A put by itself takes 2 ms, the second at one time 4, the third 6."""

    def __init__(self) -> None:
        super().__init__()
        self._under_way = 0

    async def put_new(self, path: str, data: bytes) -> None:
        self._under_way += 1
        try:
            await anyio.sleep(0.002 * self._under_way)
            await super().put_new(path, data)
        finally:
            self._under_way -= 1


@on_virtual_time
async def test_a_directory_whose_flushes_hold_each_other_up_acks_sooner_after_a_while():
    async with open_marker_engine(CrowdedStore(), NO_MERGES) as engine:
        requests = Requests(engine.directory(INSTANT))
        await requests.come(2000, 8.0)
        assert 0.002 <= engine.statistics().interval_s <= 0.008
    first, last = requests.acks_s[200:1200], requests.acks_s[-1000:]
    assert sum(last) / len(last) < 0.6 * sum(first) / len(first)
    assert not requests.failed


class StallingStore(MemoryBackend):
    """Puts take 20 ms; from a certain one on, for some seconds, they end together when these are over."""

    def __init__(self, number: int, stall_s: float) -> None:
        super().__init__()
        self._left = number
        self._stall_s = stall_s
        self._until = 0.0

    async def put_new(self, path: str, data: bytes) -> None:
        self._left -= 1
        if not self._left:
            self._until = anyio.current_time() + self._stall_s
        await anyio.sleep(max(0.02, self._until - anyio.current_time()))
        await super().put_new(path, data)


@pytest.mark.no_cover
@pytest.mark.parametrize("number", [240, 255, 275])
@on_virtual_time
async def test_a_stall_of_the_store_leaves_nothing_behind_whenever_it_comes(number):
    async with open_marker_engine(StallingStore(number, 3.0), NO_MERGES) as engine:
        requests = Requests(engine.directory(INSTANT))
        await requests.come(500, 20.0)
    last = requests.acks_s[-1000:]
    assert sum(last) / len(last) < 0.025
