import os
import select

import pytest

from tallymark.bench.writes.hands import Hands, SideFailed


def program(tmp_path, text):
    """What stands in for the Python of a side: it is started with the arguments of one."""
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def hands(tmp_path, python):
    return Hands("ours", {}, {}, tmp_path / "log", python)


def test_a_side_that_ends_is_told_with_the_last_lines_of_its_log(tmp_path):
    stack = "".join(f"\\n\\tat a.b.C(C.java:{number})" for number in range(99))
    python = program(tmp_path, f"printf 'no such module{stack}\\n' >&2; exit 1")
    with hands(tmp_path, python) as found, pytest.raises(SideFailed, match="side 'ours' failed: no such module"):
        found.await_session()


def test_a_side_that_has_ended_before_it_is_told_anything_is_told_so_too(tmp_path):
    with hands(tmp_path, program(tmp_path, f"exec 0<&-; echo no such module >&2; touch {tmp_path}/deaf")) as found:
        while not (tmp_path / "deaf").exists():
            os.sched_yield()
        with pytest.raises(SideFailed, match="no such module"):
            found.begin()


def test_what_a_side_has_started_ends_with_the_block(tmp_path):
    python = program(tmp_path, f'sleep 600 & echo $! > {tmp_path}/child; echo \'{{"spark": "4.3.0"}}\'; read x; read x')
    with hands(tmp_path, python) as found:
        found.begin()
        found.await_session()
        assert found.spark == "4.3.0"
        child = int((tmp_path / "child").read_text())
        handle = os.pidfd_open(child)
    assert select.select([handle], [], [], 30)[0] == [handle]  # readable once it has ended
    os.close(handle)
