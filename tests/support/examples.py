"""Numbers of Hypothesis examples, scaled by the test tier."""

from typing import Literal

from hypothesis import settings

EXAMPLES_MIN = 5
"""Fewer examples than this find nothing that a plain test would not."""

_FAST = 0.2
"""The share of examples that the fast tier draws: the other tiers draw all of them."""

# A deadline measures the machine, not the code. Where CI is set, Hypothesis draws the same examples each time.
for _name, _examples in {"fast": 20, "full": 100}.items():
    settings.register_profile(_name, settings(), max_examples=_examples, deadline=None, print_blob=True)


def load_profile(name: Literal["fast", "full"]) -> None:
    """Use a profile. Call before test modules are imported: their decorators read it."""
    settings.load_profile(name)


def examples(full: int) -> int:
    """Return how many examples a test draws that draws ``full`` of them in the full tier."""
    if settings.get_current_profile_name() == "fast":
        return max(min(full, EXAMPLES_MIN), round(full * _FAST))
    return full
