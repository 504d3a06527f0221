"""Loggers as they were before a test."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def kept_loggers() -> Iterator[None]:
    """Restore the loggers that ``configure_logs`` changes."""
    root, audit = logging.getLogger(), logging.getLogger("tallymark.audit")
    before = root.handlers[:], root.level, audit.handlers[:], audit.propagate, audit.level
    yield
    root.handlers[:], root.level, audit.handlers[:], audit.propagate, audit.level = before
