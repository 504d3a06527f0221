from collections.abc import Iterator

import pytest

from tests.support.spark import pytest_collection_modifyitems, spark
from tests.system.forked import Start, forking

__all__ = ["pytest_collection_modifyitems", "spark", "start"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts processes that do not outlive the test."""
    with forking() as start:
        yield start
