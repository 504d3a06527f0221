import pytest

from tests.support.spark import PANDAS_WARNING, spark

__all__ = ["spark"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.filterwarnings(PANDAS_WARNING))
