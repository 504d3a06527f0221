"""Compactions write files in threads, so their tests run on a real loop."""

import pytest

from tests.engine.jobs.conftest import pytest_pyfunc_call, staged, store, unstaged

__all__ = ["loop", "pytest_pyfunc_call", "staged", "store", "unstaged"]


@pytest.fixture
def loop() -> str:
    """The one on which a process runs that has no other."""
    return "trio"
