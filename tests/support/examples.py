"""Numbers of Hypothesis examples, scaled by the test tier."""

from hypothesis import settings

EXAMPLES_MIN = 5
"""Fewer examples than this find nothing that a plain test would not."""

SHARES = {"fast": 0.2, "full": 0.5, "release": 1.0}
"""The share of examples that each tier draws."""

# A deadline measures the machine, not the code. Where CI is set, Hypothesis draws the same examples each time.
for _tier, _share in SHARES.items():
    settings.register_profile(_tier, settings(), max_examples=int(100 * _share), deadline=None, print_blob=True)


def load_profile(tier: str) -> None:
    """Use the profile of a tier. Call before test modules are imported: their decorators read it."""
    settings.load_profile(tier)


def examples(most: int) -> int:
    """Return how many examples a test draws that draws ``most`` of them in the release tier."""
    share = SHARES.get(settings.get_current_profile_name(), 1.0)
    return max(min(most, EXAMPLES_MIN), round(most * share))
