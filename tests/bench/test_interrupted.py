"""What is left of a run that somebody ends early: nothing."""

import os
import signal
import subprocess
import sys

import pytest

from tests.support.process import await_that

HEEDING = ["env", "--default-signal=INT"]
"""These tests may be a shell's background job, which ignores SIGINT, and so would what it starts."""


@pytest.mark.parametrize(
    ("number", "shell"),
    [
        (signal.SIGINT, HEEDING),
        (signal.SIGTERM, []),
        (signal.SIGTERM, ["sh", "-c", 'trap "" INT; exec "$@"', "in the background"]),
    ],
)
def test_a_run_that_is_told_to_end_removes_its_folder(number, shell, tmp_path):
    command = [*shell, sys.executable, "-m", "tallymark.bench", "markers", "--part", "slow"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as running:
        await_that(lambda: running.poll() or list(tmp_path.glob("tallymark-bench-*/*")), "it has made its folder")
        running.send_signal(number)
        _, said = running.communicate()
    assert (running.returncode, said.split()) == (1, [b"Aborted!"])
    assert list(tmp_path.iterdir()) == []
