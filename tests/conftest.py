"""What holds for all tests."""

from hypothesis import settings

# A deadline measures the machine, not the code. Where CI is set, Hypothesis draws the same examples each time.
settings.register_profile("tallymark", settings(), deadline=None, print_blob=True)
settings.load_profile("tallymark")
