"""Fixtures and options of all tests."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import tiers
from tests.support.services.servers import bucket, dfs, gcs, s3, s3_keys

__all__ = ["bucket", "dfs", "gcs", "s3", "s3_keys"]

_ENGINE = Path(__file__).parent / "engine"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--tier", choices=tiers.TIERS, help="how much to run; everything that is named, by default")


def pytest_configure(config: pytest.Config) -> None:
    tiers.choose(config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Measure coverage by the engine's own tests, since watching all would take half of CI's time; apply the tier."""
    for item in items:
        if not item.path.is_relative_to(_ENGINE):
            item.add_marker(pytest.mark.no_cover)
    tiers.leave_out(config, items)


@pytest.fixture
def kept_loggers() -> Iterator[None]:
    """Restore the loggers that ``configure_logs`` changes."""
    loggers = [logging.getLogger(name) for name in (None, "tallymark", "tallymark.audit")]
    before = [(logger.handlers[:], logger.level, logger.propagate) for logger in loggers]
    yield
    for logger, (handlers, level, propagates) in zip(loggers, before, strict=True):
        logger.handlers[:], logger.level, logger.propagate = handlers, level, propagates
