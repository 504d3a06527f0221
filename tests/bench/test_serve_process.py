import socket
from urllib.request import urlopen

import psutil
import pytest

from tallymark.backends import StorageOptions
from tallymark.bench.serve_process import ServeFailed, serve_process
from tallymark.engine.serve.page_process import NICE


def test_it_serves_drivers_and_hudi_for_the_block_and_ends_with_it(tmp_path):
    (tmp_path / "lake").mkdir()
    with serve_process(str(tmp_path / "lake"), StorageOptions(), tmp_path / "logs") as served:
        for port in (served.hudi_port, int(served.url.rpartition(":")[2])):
            socket.create_connection(("127.0.0.1", port), timeout=10).close()
        assert psutil.pid_exists(served.pid)
        assert served.page is None
    assert not psutil.pid_exists(served.pid)


def test_its_pages_are_of_a_process_that_ends_with_it(tmp_path):
    (tmp_path / "lake").mkdir()
    with serve_process(str(tmp_path / "lake"), StorageOptions(), tmp_path / "logs", has_pages=True) as served:
        [child] = psutil.Process(served.pid).children()
        assert child.nice() == psutil.Process(served.pid).nice() + NICE
        assert b"Tallymark" in urlopen(f"{served.page}/", timeout=30).read()
    child.wait(timeout=30)


def test_where_it_does_not_start_the_error_has_its_last_line(tmp_path):
    with (
        pytest.raises(ServeFailed, match=r"has not started: .*'not/absolute' is not an absolute path"),
        serve_process("not/absolute", StorageOptions(), tmp_path),
    ):
        pass
