from tests.support.spark import pytest_collection_modifyitems, spark
from tests.system.forked import start

__all__ = ["pytest_collection_modifyitems", "spark", "start"]
