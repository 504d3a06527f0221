import math
import random

import pytest

from tallymark.bench.paired import COVERAGE, Bar, compare, estimate, verdict

BAR = Bar(share=0.05, seconds=50e-6)


def covered(count: int, rank: int) -> float:
    """The chance that the rank-th smallest and the rank-th largest of so many values hold the median between them."""
    return 1 - 2 * sum(math.comb(count, heads) for heads in range(rank)) / float(2**count)


@pytest.mark.parametrize("count", [*range(6, 60), 101])
def test_interval_covers_and_the_next_narrower_one_would_not(count):
    rank = int(estimate([float(number) for number in range(1, count + 1)]).low)
    assert covered(count, rank) >= COVERAGE > covered(count, rank + 1)


@pytest.mark.parametrize(("values", "estimated"), [([3.0, 1.0, 2.0], (2.0, 1.0, 3.0)), ([7.0], (7.0, 7.0, 7.0))])
def test_few_values_give_the_smallest_and_the_largest(values, estimated):
    found = estimate(values)
    assert (found.value, found.low, found.high) == estimated


def test_interval_holds_the_true_median_about_as_often_as_it_says():
    chance = random.Random(4)
    runs = [estimate([chance.lognormvariate(0, 2) for _ in range(21)]) for _ in range(2000)]
    hits = sum(run.low <= 1.0 <= run.high for run in runs)
    assert 0.95 <= hits / len(runs) <= 0.985


def test_drift_of_the_machine_drops_out_of_difference_and_ratio():
    speed = [1.0, 3.0, 0.5, 8.0, 2.0, 5.0]
    found = compare([110e-6 * slow for slow in speed], [100e-6 * slow for slow in speed])
    assert found.ratio.low == pytest.approx(1.1)
    assert found.ratio.high == pytest.approx(1.1)


def test_difference_is_of_pairs_and_not_of_the_two_medians():
    assert compare([5.0, 1.0, 9.0], [4.0, 3.0, 8.5]).difference_s.value == 0.5


def test_sides_of_different_length_are_refused():
    with pytest.raises(ValueError, match="zip"):
        compare([1.0, 2.0], [1.0])


@pytest.mark.parametrize(("reference_s", "allowed_s"), [(100e-6, 50e-6), (1e-3, 50e-6), (2e-3, 100e-6), (1.0, 0.05)])
def test_allowance_is_the_larger_of_share_and_seconds(reference_s, allowed_s):
    assert BAR.allowance(reference_s) == pytest.approx(allowed_s)


REFERENCE = [100e-6] * 6


@pytest.mark.parametrize(
    ("more_us", "expected"),
    [
        ((10, 20, 30, 40, 45, 49), "within"),
        ((51, 60, 70, 80, 90, 100), "over"),
        ((10, 20, 30, 40, 45, 51), "unclear"),
        ((49, 60, 70, 80, 90, 100), "unclear"),
        ((-20, -10, -5, -4, -3, 0), "within"),
    ],
)
def test_verdict_is_given_only_where_the_whole_interval_says_so(more_us, expected):
    assert verdict([100e-6 + more * 1e-6 for more in more_us], REFERENCE, BAR) == expected
