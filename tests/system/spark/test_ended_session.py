"""A session that is no more has a name for it, and no table begins."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.jars import java
from tests.support.process import BOUND_S, ROOT

pytestmark = pytest.mark.spark


def test_a_session_that_was_stopped_or_has_lost_its_java_is_told_in_one_line(tmp_path: Path) -> None:
    java()
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.system.spark.ended_session_program", tmp_path / "t"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=BOUND_S,
    )
    said = done.stdout.splitlines()
    assert [line.partition(":")[0] for line in said] == ["the Spark session of df has ended"] * 2, done.stderr
    assert not (tmp_path / "t").exists()
