"""The least program: real clock and real sockets, for a moment."""

import pytest

from tallymark.bench.markers.bare import bare_ratio
from tallymark.bench.markers.pace_cost import PaceCost, PaceLoad


@pytest.mark.parametrize("is_far", [False, True])
def test_an_ack_takes_longer_than_its_put(is_far):
    assert bare_ratio(0.005, is_far=is_far, seconds=0.1) > 1


def cost(rate: float | None) -> PaceCost:
    load = PaceLoad(put_s=0.1, rate=rate, is_far=True)
    return PaceCost(load=load, acks=1, ack_s=0.118, put_s=0.1, puts_per_s=40.0, bare_ratio=1.01)


def test_the_least_possible_is_what_the_model_says_and_what_the_least_program_adds():
    assert cost(rate=None).ratio == pytest.approx(1.18)
    assert cost(rate=None).least_ratio == pytest.approx(1.01)
    assert cost(rate=100_000.0).least_ratio == pytest.approx(1.125 + 0.01, abs=1e-4), "a flush every quarter of a put"
