"""Virtual time for the async tests of this folder."""

from tests.engine.jobs.conftest import pytest_pyfunc_call

__all__ = ["pytest_pyfunc_call"]
