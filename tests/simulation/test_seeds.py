"""Whole jobs in simulated time, among crashes, pauses and rivals: the first seeds of ``nox -s simulate``."""

import pytest

from tests.simulation.campaign import examine
from tests.simulation.kind import draw


@pytest.mark.parametrize("seed", range(40))
def test_every_promise_is_kept(seed):
    assert examine(draw(seed)) is None
