import json
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace

import pytest

from tallymark.backends.doctor import Diagnosis, Examination, Finding, Latency, LocalFileSystem
from tallymark.backends.doctor.examine import PROBING_S
from tallymark.cli.doctor import diagnosis, show_doctor
from tallymark.cli.page import console
from tests.cli.scene import run
from tests.support.rights import locked_folder

PATIENT = """
from tallymark.backends.doctor import examine
examine.REMOVAL_S_MAX = 100.0
from tallymark.cli import main
main()
"""
"""The command; what it has put it removes on a busy machine, too."""

FOUND = Diagnosis(
    url="s3://bucket/doctor",
    findings=(Finding("creates a name once", "broken", "32 of 32 won"), Finding("keeps odd names", "kept", "15 names")),
    latencies=(Latency("put_new", 20, 0.04, 0.05, 0.09), Latency("get", 20, 0.01, 0.01, 0.02)),
    clock_skew_s=-120.0,
    ground=LocalFileSystem("/data", "ext4", "/", is_read_only=False, free_bytes=10**9),
    remarks=("run jobs nearer",),
    left=("taken",),
    seconds=4.2,
)


def test_the_page_shows_the_facts_of_the_document_and_a_quarter_of_the_mean_put_as_the_interval(capsys):
    document = diagnosis("s3://bucket", FOUND)
    assert document["interval_s"] == 0.0125
    show_doctor(console(), document)
    page = capsys.readouterr().out
    facts = ("broken", "32 of 32 won", "40.0 ms", "12.5 ms", "120 s behind", "953.7 MiB", "run jobs nearer", "taken")
    for fact in facts:
        assert fact in page
    assert page.splitlines()[-1] == "s3://bucket is not fit: creates a name once: 32 of 32 won."
    show_doctor(console(), diagnosis("s3://bucket", replace(FOUND, clock_skew_s=1.0)))
    assert "agree to a second" in capsys.readouterr().out


def test_a_store_that_is_not_fit_ends_with_exit_code_1_and_a_whole_document():
    with locked_folder() as folder:
        result = run("doctor", folder, "--json")
    assert (result.exit_code, result.stderr) == (1, "")
    found = json.loads(result.stdout)
    assert found["fit"] is False
    assert found["verdict"].startswith("not fit: gives back what it was given: ")
    assert found["interval_s"] is None


@pytest.mark.parametrize("signal_", [signal.SIGINT, signal.SIGTERM])
def test_a_doctor_who_is_interrupted_says_so_and_leaves_nothing(tmp_path, signal_):
    program = [sys.executable, "-c", PATIENT, "doctor", str(tmp_path)]
    with subprocess.Popen(program, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        until = time.monotonic() + 120
        while not any((folder / "many").exists() for folder in tmp_path.iterdir()) and time.monotonic() < until:
            threading.Event().wait(0.02)
        running.send_signal(signal_)
        _, said = running.communicate(timeout=120)
    assert said == f"tallymark: the examination of {tmp_path} was interrupted; nothing is left\n"
    assert running.returncode == 1
    assert list(tmp_path.iterdir()) == []


def test_before_a_large_file_is_written_its_size_is_told(tmp_path, monkeypatch):
    async def found(_: Examination) -> Diagnosis:
        return FOUND

    monkeypatch.setattr(Examination, "run", found)
    result = run("doctor", tmp_path, "--large")
    assert result.stderr.startswith(f"--large writes one file of 5 GB below {tmp_path} and removes it.")


def test_it_takes_as_long_as_it_says_unless_told_otherwise():
    assert f"[default: {PROBING_S:g}" in run("doctor", "--help").stdout
