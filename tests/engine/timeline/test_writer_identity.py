"""Whether another process of this machine is gone."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from tallymark.engine.timeline import writer_identity
from tallymark.engine.timeline.writer_identity import WriterIdentity

HERE = WriterIdentity.here()

linux = pytest.mark.skipif(HERE.boot_id is None, reason="only Linux tells which process is which")


@pytest.fixture
def child():
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    yield process
    assert process.stdin is not None
    process.stdin.close()
    process.kill()
    process.wait()


def changed(identity: WriterIdentity, field: str, value: str | None) -> WriterIdentity:
    return WriterIdentity(**{**identity.fields(), field: value})


def identity(pid: int) -> WriterIdentity:
    return replace(HERE, pid=pid, started=writer_identity._started(pid))


@linux
def test_this_process_and_a_living_one_are_not_gone(child):
    assert HERE.pid == os.getpid()
    assert not HERE.is_gone(seen_from=HERE)
    assert not identity(child.pid).is_gone(seen_from=HERE)


@linux
def test_a_killed_process_is_gone_even_before_its_parent_has_noticed(child):
    writer = identity(child.pid)
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and is not reaped
    assert writer.is_gone(seen_from=HERE)
    child.wait()
    assert writer.is_gone(seen_from=HERE)


@linux
def test_a_process_id_that_is_used_again_is_another_process(child):
    assert replace(identity(child.pid), started="1").is_gone(seen_from=HERE)


@linux
@pytest.mark.parametrize("field", ["host", "boot_id", "pid_namespace"])
def test_of_another_machine_boot_or_container_nothing_is_known(field):
    gone = replace(HERE, pid=2**22 + 1, started="1")
    assert gone.is_gone(seen_from=HERE)
    assert not changed(gone, field, "another").is_gone(seen_from=HERE)


@pytest.mark.parametrize("field", ["boot_id", "pid_namespace", "started"])
def test_where_a_fact_is_missing_nothing_is_known(field):
    gone = changed(replace(HERE, pid=2**22 + 1), field, None)
    assert not gone.is_gone(seen_from=changed(HERE, field, None))


@linux
def test_a_process_that_proc_hides_is_not_gone_nor_is_another_users(child, monkeypatch):
    """With hidepid, /proc does not show the processes of other users."""
    writer = identity(child.pid)
    monkeypatch.setattr(writer_identity, "_text", lambda path: None)
    assert not writer.is_gone(seen_from=HERE)
    child.kill()
    child.wait()
    assert writer.is_gone(seen_from=HERE)

    def refused(pid: int, signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refused)
    assert not writer.is_gone(seen_from=HERE), "a process of another user may have its id"


def test_a_command_with_spaces_and_brackets_does_not_hide_the_start_time(monkeypatch):
    fields = ["S", *map(str, range(4, 53))]
    monkeypatch.setattr(writer_identity, "_text", lambda path: f"7 (a) b (c)) {' '.join(fields)}")
    assert writer_identity._started(7) == "22"
