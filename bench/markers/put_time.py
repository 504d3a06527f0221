"""How long a put takes, drawn anew for each: the shapes that stores show."""

import math
from collections.abc import Callable
from random import Random

PutTime = Callable[[], float]
"""Seconds that the next put takes."""

_Z99 = 2.3263478740408408
"""The standard normal distribution's 99th percentile."""


def constant(seconds: float) -> PutTime:
    return lambda: seconds


def lognormal(median_s: float, random: Random, *, p99_over_median: float = 5.0) -> PutTime:
    """As object stores answer within a region: a long tail to one side."""
    sigma = math.log(p99_over_median) / _Z99
    return lambda: random.lognormvariate(math.log(median_s), sigma)


def bimodal(usual_s: float, random: Random, *, slow_s: float = 1.0, slow_share: float = 0.01) -> PutTime:
    """Quick, but for the few that meet something in trouble."""
    return lambda: slow_s if random.random() < slow_share else usual_s
