"""Choosing by weight: exact, however the weights are."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallymark.spark_glue.shares import slots_of

WEIGHTS = st.lists(st.one_of(st.integers(1, 3), st.integers(1, 10**12)), min_size=1, max_size=20)


@given(WEIGHTS)
def test_each_place_comes_up_as_often_as_its_weight_says(weights: list[int]) -> None:
    slots, total = slots_of(weights), sum(weights)
    drawn = [Fraction(0)] * len(weights)
    for slot in slots:
        assert 0 <= slot.share <= total
        drawn[slot.own] += Fraction(slot.share, len(slots))
        drawn[slot.other] += Fraction(total - slot.share, len(slots))
    assert drawn == weights


@pytest.mark.parametrize("count", [1, 2, 7])
def test_equal_weights_need_no_second_choice(count: int) -> None:
    assert [(slot.share, slot.own) for slot in slots_of([5] * count)] == [(5 * count, place) for place in range(count)]
