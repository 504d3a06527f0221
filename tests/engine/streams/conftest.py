"""Streams write files in threads, so their tests run on real loops."""

from tests.engine.jobs.conftest import loop, pytest_pyfunc_call, staged, store, unstaged

__all__ = ["loop", "pytest_pyfunc_call", "staged", "store", "unstaged"]
