"""What holds for all tests."""

from hypothesis import settings

# A deadline measures the machine, not the code. In CI (by the variable CI) Hypothesis also draws the same examples again.
settings.register_profile("tallymark", settings(), deadline=None, print_blob=True)
settings.load_profile("tallymark")
