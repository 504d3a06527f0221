"""The tests of faults once more, where executors are processes of their own."""

import os
import subprocess
import sys

import pytest

from tests.support.jars import java
from tests.support.process import ROOT
from tests.support.spark import LOCAL_CLUSTER, MASTER

pytestmark = pytest.mark.spark


@pytest.mark.release
def test_tasks_fail_on_a_local_cluster_as_they_do_in_one_process() -> None:
    java()
    done = subprocess.run(  # one process has one Spark
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "tests/system/spark/test_faults.py",
            "-k",
            "local",
            "-p",
            "no:cacheprovider",
        ],
        cwd=ROOT,
        env={**os.environ, MASTER: LOCAL_CLUSTER},
        capture_output=True,
        text=True,
        timeout=480,
    )
    assert done.returncode == 0, done.stdout + done.stderr
