import os
import subprocess
import sys
from pathlib import Path

import pytest

from tallymark.bench.writes.process_tree import Peaks, Spent, peaks, read

TICK = os.sysconf("SC_CLK_TCK")


def put(proc: Path, pid: int, parent: int, command: str, *, own_s=(0.0, 0.0), waited_s=(0.0, 0.0)):
    """A process as proc(5) has it."""
    times = " ".join(str(round(seconds * TICK)) for seconds in (*own_s, *waited_s))
    (proc / str(pid)).mkdir(exist_ok=True)
    (proc / str(pid) / "stat").write_text(f"{pid} ({command}) S {parent} 1 1 0 -1 0 0 0 0 0 {times} 20 0 1 0 0\n")


@pytest.fixture
def proc(tmp_path):
    """A driver, its JVM with a daemon and a worker below it, and a stranger."""
    (tmp_path / "self").mkdir()
    put(tmp_path, 10, 1, "python", own_s=(1.0, 0.5))
    put(tmp_path, 11, 10, "java", own_s=(20.0, 2.0), waited_s=(0.25, 0.5))
    put(tmp_path, 12, 11, "python3 (daemon) x", own_s=(0.25, 0.0), waited_s=(1.0, 0.0))
    put(tmp_path, 13, 12, "python", own_s=(3.0, 0.0))
    put(tmp_path, 99, 1, "java", own_s=(100.0, 0.0))
    return tmp_path


def test_every_process_below_the_root_is_counted_by_what_it_is_and_no_other(proc):
    found = read(10, proc).spent
    assert found == Spent(driver_s=1.5, jvm_s=22.0, python_s=4.25, forks_s=0.75)
    assert found.total_s == 28.5


def test_the_peak_of_each_kind_is_that_of_its_largest_process_and_the_driver_is_none_of_them(proc):
    for pid, kilobytes in ((10, 9000), (11, 800), (12, 70), (13, 60), (99, 5000)):
        (proc / str(pid) / "status").write_text(f"Name:\tany\nVmHWM:\t    {kilobytes} kB\nThreads:\t1\n")
    assert peaks(10, proc) == Peaks(jvm_bytes=800 * 1024, python_bytes=70 * 1024)


def test_a_process_that_ends_while_its_memory_is_read_holds_none(proc):
    assert peaks(10, proc) == Peaks(jvm_bytes=0, python_bytes=0)


def test_a_worker_that_ends_between_two_readings_is_not_lost(proc):
    before = read(10, proc)
    (proc / "13" / "stat").unlink()
    put(proc, 12, 11, "python", own_s=(0.25, 0.0), waited_s=(1.0 + 3.5, 0.0))  # it ran half a second more
    assert read(10, proc).since(before) == Spent(driver_s=0, jvm_s=0, python_s=0.5, forks_s=0)


def test_a_worker_that_nobody_waited_for_takes_nothing_back_of_what_others_did(proc):
    """PySpark's daemon ignores SIGCHLD: the kernel then forgets what a worker took, and Spark ends idle ones."""
    before = read(10, proc)
    (proc / "13" / "stat").unlink()
    put(proc, 11, 10, "java", own_s=(20.5, 2.0), waited_s=(0.25, 0.5))
    assert read(10, proc).since(before) == Spent(driver_s=0, jvm_s=0.5, python_s=0, forks_s=0)


def test_work_of_this_process_and_of_a_child_that_ended_is_seen():
    before = read(os.getpid())
    work = "import time\nwhile time.process_time() < 0.2: pass"
    subprocess.run([sys.executable, "-c", work], check=True)
    assert read(os.getpid()).since(before).driver_s > 0.15  # ticks of 10 ms
