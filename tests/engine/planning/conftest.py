"""The stores and the loop of the tests of jobs."""

from tests.engine.jobs.conftest import loop, pytest_pyfunc_call, staged, store, unstaged

__all__ = ["loop", "pytest_pyfunc_call", "staged", "store", "unstaged"]
