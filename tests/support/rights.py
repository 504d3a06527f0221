"""Storage that this process may not write, also where the tests run as root."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

NOBODY = 65534

NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="two users are needed: run as root")


@contextmanager
def locked_folder() -> Iterator[Path]:
    """An empty folder that may be read and not written for the time of the block; root runs the block as nobody.

    It lies outside pytest's own folders, which only their owner may enter.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o555)
        try:
            with as_nobody():
                yield folder
        finally:
            folder.chmod(0o755)


@contextmanager
def open_folder() -> Iterator[Path]:
    """An empty folder that everybody may enter and write; outside pytest's own, as above."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root acts as nobody for the time of the block; others as themselves."""
    is_root = os.geteuid() == 0
    if is_root:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
