"""Executors that lack Tallymark get it as ``--py-files`` gives it, from a zip of the wheel."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.packaging.distribution import Environment, build
from tests.support.process import BOUND_S, ROOT
from tests.support.spark import require_java
from tests.support.storage import exactly_the_committed_files

pytestmark = pytest.mark.spark


def test_a_zip_of_the_wheel_is_all_that_executors_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_java()
    package = shutil.copy(build(tmp_path / "distribution").wheel, tmp_path / "tallymark.zip")
    bare = Environment.make(tmp_path / "bare")
    assert subprocess.run([bare.python, "-c", "import tallymark"], capture_output=True).returncode != 0
    monkeypatch.setenv("PYSPARK_PYTHON", str(bare.python))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.system.py_files_program", package, tmp_path / "table"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=BOUND_S,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("tallymark.zip/tallymark/__init__.py")
    assert len(exactly_the_committed_files(tmp_path / "table")) == 4
