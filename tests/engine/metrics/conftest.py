"""The stores and the loop of the tests of jobs, and a scrape."""

from collections.abc import Iterator

import pytest

from tests.engine.jobs.conftest import pytest_pyfunc_call, staged, store, unstaged
from tests.support.scrape import Grown, growing

__all__ = ["pytest_pyfunc_call", "staged", "store", "unstaged"]


@pytest.fixture
def grown() -> Iterator[Grown]:
    with growing() as scrape:
        yield scrape
