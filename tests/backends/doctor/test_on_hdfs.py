"""The doctor on a real NameNode with two DataNodes."""

import re
from importlib import import_module

import pytest

from tests.backends.hdfs_peek import HdfsPeek
from tests.cli.scene import run
from tests.support.services.minidfs import MiniDfs


def test_hdfs_is_fit_and_not_even_a_directory_is_left(dfs: MiniDfs, monkeypatch: pytest.MonkeyPatch):
    for module in ("examine", "practice"):
        monkeypatch.setattr(import_module(f"tallymark.backends.doctor.{module}"), "REMOVAL_S_MAX", 100.0)
    peek = HdfsPeek(dfs)
    result = run("doctor", peek.backend.url, "--seconds=200")
    assert result.exit_code == 0, result.stdout
    assert re.search(r"closes staging permanently +kept", result.stdout)
    assert peek.objects() == {}
    assert dfs.directories(peek.root) in ([], [""])
