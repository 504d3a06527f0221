"""The end of a process whose calls into hdfs-native have not returned."""

import os
import socket
import subprocess
import sys
import threading

import pytest

from tallymark.backends.hdfs import shutdown_guard
from tallymark.backends.hdfs.shutdown_guard import ShutdownGuard
from tests.support.process import ROOT, await_that

GRACE_S = 1.0
"""Time in which a call returns whose connection was closed."""


def test_a_driver_that_ends_during_a_request_to_hdfs_ends_with_its_own_code():
    pytest.importorskip("hdfs_native", reason="needs the extra [hdfs]")
    with socket.create_server(("127.0.0.1", 0)) as namenode:
        address = f"127.0.0.1:{namenode.getsockname()[1]}"
        with subprocess.Popen(
            [sys.executable, "-m", "tests.backends.hdfs.exiting_program", address],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as program:
            assert program.stdin is not None
            assert program.stdout is not None
            namenode.settimeout(60)
            connection, _ = namenode.accept()
            assert [program.stdout.readline() for _ in range(2)] == [b"requested\n", b"ending\n"]
            namenode.close()
            connection.close()
            assert program.stdout.readline() == b"down\n"
            threading.Event().wait(GRACE_S)
            program.stdin.close()
            assert program.wait(60) == 1


def test_closing_waits_for_the_calls_in_flight():
    calls = ShutdownGuard()
    assert calls.start("slow")
    closing = threading.Thread(target=calls.close)
    closing.start()
    await_that(lambda: not calls.start("late"), "no further call starts")
    assert closing.is_alive()
    calls.end("slow")
    closing.join(60)
    assert not closing.is_alive()


def test_closing_does_not_wait_without_limit(monkeypatch):
    monkeypatch.setattr(shutdown_guard, "EXIT_WAIT_S", 0.02)
    calls = ShutdownGuard()
    assert calls.start("silent")
    calls.close()
    assert not calls.start("late")


def test_a_forked_child_does_not_wait_for_its_parents_calls(monkeypatch):
    calls = ShutdownGuard()
    assert calls.start("the parent's")
    monkeypatch.setattr(os, "getpid", lambda: 0)
    monkeypatch.setattr(threading.Event, "wait", lambda *_: pytest.fail("waits"))
    calls.close()
    assert not calls.start("the child's")
