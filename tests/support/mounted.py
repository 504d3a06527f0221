"""Small file systems for tests, in memory."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """A new tmpfs on the folder for the time of the block; where none can be mounted, the test is skipped."""
    folder.mkdir(parents=True, exist_ok=True)
    _mount("-t", "tmpfs", "-o", options, "tallymark-tests", str(folder))
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def make_read_only(folder: Path) -> None:
    _mount("-o", "remount,ro", str(folder))


def _mount(*arguments: str) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small disk")
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no small disk could be mounted: {done.stderr.strip()}")
