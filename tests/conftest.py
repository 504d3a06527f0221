"""What holds for all tests."""

from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.gcs_facade import gcs
from tests.support.minidfs import dfs
from tests.support.s3_clients import s3_keys
from tests.support.s3_server import bucket, s3

__all__ = ["bucket", "dfs", "gcs", "s3", "s3_keys"]

# A deadline measures the machine, not the code. Where CI is set, Hypothesis draws the same examples each time.
settings.register_profile("tallymark", settings(), deadline=None, print_blob=True)
settings.load_profile("tallymark")

_ENGINE = Path(__file__).parent / "engine"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Coverage says what the engine's own tests reach. To watch the others too would take half of CI's time."""
    for item in items:
        if not item.path.is_relative_to(_ENGINE):
            item.add_marker(pytest.mark.no_cover)
