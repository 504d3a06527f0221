"""Executors whose Python lacks something: one line says which Python, on which host, and what to do."""

import platform
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.packaging.distribution import Environment, build
from tests.support.process import BOUND_S, ROOT
from tests.support.spark import require_java
from tests.support.storage import exactly_the_committed_files

pytestmark = pytest.mark.spark


def words(python: Path, table: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a write says whose tasks run this Python."""
    require_java()
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.system.bare_executors_program", table],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=BOUND_S,
    )
    assert done.returncode == 0, done.stderr
    assert exactly_the_committed_files(table) == set()
    return done.stdout.strip().rpartition("\n")[2]


def begins(python: Path) -> str:
    where = f"Python {platform.python_version()} at {python} on host {platform.node()}"
    return f"JobFailed: Spark gave up on a task: {where} "


def test_a_python_without_the_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = Environment.make(tmp_path / "bare").python
    said = words(python, tmp_path / "t", monkeypatch)
    assert said.startswith(begins(python) + "cannot import tallymark (No module named 'tallymark'); ")
    assert "--py-files" in said


def test_a_python_without_arrow_which_sparks_own_worker_wants_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv.create(tmp_path / "empty", symlinks=True)
    python = tmp_path / "empty/bin/python"
    said = words(python, tmp_path / "t", monkeypatch)
    assert said.startswith(begins(python) + "cannot import py")
    assert "executors need what the driver has" in said


def test_another_release_on_executors_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = Environment.make(tmp_path / "older")
    environment.install(build(tmp_path / "distribution").wheel)
    front = environment.site_packages / "tallymark/__init__.py"
    text = front.read_text()
    shutil.rmtree(front.parent / "__pycache__", ignore_errors=True)
    front.write_text(text.replace('__version__ = "', '__version__ = "0.0.1+'))
    said = words(environment.python, tmp_path / "t", monkeypatch)
    assert said.startswith(begins(environment.python) + "has tallymark 0.0.1+")
    assert f"at {front}, and the driver has " in said
