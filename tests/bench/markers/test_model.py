"""The engine's mean ack is that of the arithmetic of paced group commit, but on quick stores."""

import pytest

from tallymark.bench.markers.model import PUTS_S, RATES, SHAPES, Load, ack_s, puts_per_s, simulate


def test_quiet_arrivals_wait_for_a_put_and_loaded_ones_for_half_an_interval_more():
    assert ack_s(rate=0.001, interval_s=0.01, put_s=0.04) == pytest.approx(0.04, rel=1e-4)
    assert ack_s(rate=1e6, interval_s=0.01, put_s=0.04) == pytest.approx(0.045)
    assert puts_per_s(rate=0.001, interval_s=0.01) == pytest.approx(0.001)
    assert puts_per_s(rate=1e6, interval_s=0.01) == pytest.approx(100)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("put_s", [put_s for put_s in PUTS_S if put_s > 0.005])  # quicker stores: one flush at a time
@pytest.mark.parametrize("shape", SHAPES)
def test_the_mean_ack_is_within_three_percent_of_the_model(shape, put_s, rate):
    found = simulate(Load(shape=shape, put_s=put_s, rate=rate, flushes=_flushes(shape, put_s, rate)))
    assert abs(found.ack_off) <= 0.03


def _flushes(shape: str, put_s: float, rate: float) -> int:
    """Fewer where each holds thousands of markers."""
    return 40 if rate * put_s > 1000 else 100 if shape == "constant" else 150
