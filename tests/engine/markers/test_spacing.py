"""How far apart flushes start, by acks that are told, of a store whose puts hold each other up and one whose do not."""

import math
from collections.abc import Callable
from random import Random

import anyio
import pytest

from tallymark.backends.memory import MemoryBackend
from tallymark.engine.markers import open_marker_engine
from tallymark.engine.markers.spacing import GAP_FLUSHES_MIN, STEP, TRIAL_FLUSHES, Spacing
from tests.engine.markers.recorded import INSTANT
from tests.engine.markers.requests import NO_MERGES, Requests
from tests.support.loops import on_virtual_time

BEST_S = 0.008


def held_up(apart_s: float) -> float:
    """The mean ack of a store in this machine: soonest where flushes start 8 ms apart."""
    return 0.020 if not apart_s else 0.008 * (1 + abs(math.log(apart_s / BEST_S)))


def distant(apart_s: float) -> float:
    """Of one whose puts take 30 ms, however many there are."""
    return 0.03 + max(apart_s, 0.03 / 4) / 2


def flush(spacing: Spacing, ack_s: Callable[[float], float], count: int, *, put_s: float = 0.013) -> list[float]:
    """So many flushes; how far apart each was from the next."""
    seen = []
    for _ in range(count):
        seen.append(spacing.apart_s)
        spacing.measured(ack_s(spacing.apart_s), 10, put_s)
    return seen


def test_flushes_are_as_close_as_the_pace_says_until_something_else_was_tried():
    assert set(flush(Spacing(), held_up, GAP_FLUSHES_MIN)) == {0.0}


def test_where_flushes_hold_each_other_up_they_come_to_be_about_as_far_apart_as_is_best():
    spacing = Spacing()
    flush(spacing, held_up, 2000)
    seen = flush(spacing, held_up, 20_000)
    near = [apart_s for apart_s in seen if BEST_S / STEP <= apart_s <= BEST_S * STEP]
    assert len(near) > 0.98 * len(seen)


def test_where_they_do_not_they_stay_close_and_less_and_less_is_tried():
    spacing = Spacing()
    seen = flush(spacing, distant, 30_000, put_s=0.03)
    tried = [number for number, apart_s in enumerate(seen) if apart_s]
    assert tried[0] < 2 * GAP_FLUSHES_MIN
    assert len(tried) < len(seen) / 500
    assert len([number for number in tried if number > 15_000]) < len(tried) / 2


@pytest.mark.parametrize("seed", range(5))
def test_a_store_whose_times_are_spread_wide_is_not_taken_for_one_whose_puts_hold_each_other_up(seed):
    random, spacing, total_s = Random(seed), Spacing(), 0.0
    mean_s = 0.002 * math.exp((math.log(5) / 2.326) ** 2 / 2)

    def ack_s(apart_s: float) -> float:
        nonlocal total_s
        put_s = random.lognormvariate(math.log(0.002), math.log(5) / 2.326)
        took_s = put_s + max(apart_s, mean_s / 4) / 2
        total_s += took_s
        return took_s

    seen = flush(spacing, ack_s, 20_000, put_s=mean_s)
    assert total_s / len(seen) < 1.03 * 1.125 * mean_s


def test_flushes_that_no_longer_hold_each_other_up_come_closer_again_until_the_pace_decides():
    spacing = Spacing()
    flush(spacing, held_up, 2000)
    assert spacing.apart_s
    seen = flush(spacing, lambda apart_s: 0.002 + max(apart_s, 0.0005) / 2, 20_000, put_s=0.002)
    assert seen[-1] == 0


def test_a_step_in_the_wrong_direction_is_taken_back_after_a_few_flushes():
    spacing = Spacing()
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
