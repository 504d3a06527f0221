"""A session that is no more has a name for it, and no table begins."""

from pathlib import Path

import pytest

from tests.support.jars import java
from tests.support.process import printed_by

pytestmark = pytest.mark.spark


def test_a_session_that_was_stopped_or_has_lost_its_java_is_told_in_one_line(tmp_path: Path) -> None:
    java()
    said = printed_by("tests.system.spark.ended_session_program", tmp_path / "t")
    assert [line.partition(":")[0] for line in said] == ["the Spark session of df has ended"] * 2
    assert not (tmp_path / "t").exists()
